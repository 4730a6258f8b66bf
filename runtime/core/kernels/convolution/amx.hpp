// The tiles of Intel's AMX: eight registers of up to 16 rows of 64 bytes, and products of them.
//
// After "Intel 64 and IA-32 Architectures Software Developer's Manual", volume 1, chapter
// "Programming with Intel AMX", and volume 2. The instructions are spelt here, not taken from the
// compiler's headers, so that the number of a tile can be an argument of a template, and so that no
// option of a compiler is needed.
//
// ARENITE_AMX_MODEL takes a model in software that checks what the manual demands
// (runtime/fuzz/amx_model.hpp), for any processor.
#pragma once

#include <cstddef>
#include <cstdint>

namespace arenite::amx {

constexpr std::size_t kRows = 16;
constexpr std::size_t kRowBytes = 64;

// What `configure` loads: the sizes of the tiles, of palette 1.
struct alignas(64) Sizes {
  std::uint8_t palette = 1;
  std::uint8_t first_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};
static_assert(sizeof(Sizes) == 64);

}  // namespace arenite::amx

#if defined(ARENITE_AMX_MODEL)
#include "amx_model.hpp"
#elif defined(__x86_64__) && defined(__linux__) && defined(__GNUC__)

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernels/processor.hpp"

#define ARENITE_HAVE_AMX
#define ARENITE_FOR_AMX ARENITE_FOR_AVX512

namespace arenite::amx {

// Sizes tiles, for the thread that calls; all of them are zeros then.
inline void configure(const Sizes& sizes) { asm volatile("ldtilecfg %0" ::"m"(sizes)); }

// Leaves no tile in use, which is quicker to save when another thread's turn comes.
inline void release() { asm volatile("tilerelease" ::: "memory"); }

// Loads the rows of a tile, so many bytes from each other: none, and each is the same.
template <int Tile>
ARENITE_INLINE void load(const void* from, std::size_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride), "i"(Tile) : "memory");
}

template <int Tile>
ARENITE_INLINE void store(void* to, std::size_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(stride), "i"(Tile) : "memory");
}

// Adds to each 32 bits of a row of `Sums`, wrapping, products of bytes: each four of the same row
// of `Unsigned` with as many signed ones of the row of `Signed` that those four are the number of.
template <int Sums, int Unsigned, int Signed>
ARENITE_INLINE void add_products() {
  asm volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(Sums), "i"(Unsigned), "i"(Signed));
}

// Whether the processor has tiles with products of bytes, and the system lets this process use
// them. It is asked for once, where tiles would be used for the first time: from then on the stack
// that a program gives its signals must have room for them, 8 KB.
inline bool are_allowed() {
  static const bool found = [] {
    constexpr unsigned kTiles = 1u << 24, kBytes = 1u << 25, kSaved = 1u << 27;  // bits of CPUID
    constexpr unsigned kStates = 3u << 17;  // bits of XCR0: of sizes, and of tiles
    constexpr unsigned kPaletteLeaf = 0x1d;
    constexpr int kAsk = 0x1023, kTileState = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    unsigned a, b, c, d;
    if (!has_dot_products() || static_cast<unsigned>(__get_cpuid_max(0, nullptr)) < kPaletteLeaf) {
      return false;
    }
    __cpuid(1, a, b, c, d);
    if ((c & kSaved) == 0) {
      return false;
    }
    __cpuid_count(7, 0, a, b, c, d);
    if ((d & kTiles) == 0 || (d & kBytes) == 0) {
      return false;
    }
    unsigned low, high;
    asm("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    if ((low & kStates) != kStates) {
      return false;
    }
    __cpuid_count(kPaletteLeaf, 1, a, b, c, d);
    if ((b & 0xffff) != kRowBytes || (b >> 16) < 8 || (c & 0xffff) != kRows) {
      return false;
    }
    return syscall(SYS_arch_prctl, kAsk, kTileState) == 0;
  }();
  return found;
}

}  // namespace arenite::amx

#endif
