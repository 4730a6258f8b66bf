// A model of the tiles of Intel's AMX for any processor, in place of the instructions: see
// kernels/convolution/amx.hpp, whose face it has.
//
// After the operations that "Intel 64 and IA-32 Architectures Software Developer's Manual", volume
// 2, gives for LDTILECFG, TILELOADD, TILESTORED, TDPBUSD and TILERELEASE. What would be a fault
// there ends the program here.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "kernels/processor.hpp"

#define ARENITE_HAVE_AMX
#define ARENITE_FOR_AMX

namespace arenite::amx {

// Threads that have configured tiles and not released them.
inline std::atomic<int> threads_in_use{0};
// Of which a count of zero would mean that nothing was tested.
inline std::atomic<std::size_t> num_products{0};

inline void require(bool holds, const char* what) {
  if (!holds) {
    std::fprintf(stderr, "a fault of AMX: %s\n", what);
    std::abort();
  }
}

struct Tile {
  std::size_t rows = 0;
  std::size_t row_bytes = 0;
  std::array<std::array<std::uint8_t, kRowBytes>, kRows> bytes = {};
};

struct Thread {
  bool is_configured = false;
  std::array<Tile, 8> tiles = {};
};

inline thread_local Thread thread;

inline Tile& tile(int index) {
  require(thread.is_configured, "a tile is used before tiles have sizes");
  Tile& found = thread.tiles.at(static_cast<std::size_t>(index));
  require(found.rows > 0, "a tile is used that has no size");
  return found;
}

inline void release() {
  threads_in_use -= thread.is_configured ? 1 : 0;
  thread = {};
}

inline void configure(const Sizes& given) {
  std::uint8_t bytes[sizeof given];
  std::memcpy(bytes, &given, sizeof given);
  // Of the 64 bytes: the palette, a row, 14 reserved ones, 16 widths of tiles of which 8 exist, and
  // 16 heights likewise.
  require(bytes[0] == 1, "an unknown palette");
  require(bytes[1] == 0, "instructions do not start anew");
  for (std::size_t i = 2; i < 16; ++i) {
    require(bytes[i] == 0, "reserved bytes are not zero");
  }
  release();
  for (std::size_t i = 0; i < 16; ++i) {
    const std::size_t width = bytes[16 + 2 * i] + std::size_t{256} * bytes[17 + 2 * i];
    const std::size_t height = bytes[48 + i];
    require(i < 8 || (width == 0 && height == 0), "a tile that does not exist has a size");
    require((width == 0) == (height == 0), "a tile has one extent without the other");
    require(width <= kRowBytes && height <= kRows, "a tile is too large");
    if (i < 8) {
      thread.tiles[i].rows = height;
      thread.tiles[i].row_bytes = width;
    }
  }
  thread.is_configured = true;
  ++threads_in_use;
}

template <int Index>
void load(const void* from, std::size_t stride) {
  Tile& to = tile(Index);
  to.bytes = {};
  for (std::size_t row = 0; row < to.rows; ++row) {
    std::memcpy(to.bytes[row].data(), static_cast<const std::uint8_t*>(from) + row * stride,
                to.row_bytes);
  }
}

template <int Index>
void store(void* to, std::size_t stride) {
  const Tile& from = tile(Index);
  for (std::size_t row = 0; row < from.rows; ++row) {
    std::memcpy(static_cast<std::uint8_t*>(to) + row * stride, from.bytes[row].data(),
                from.row_bytes);
  }
}

template <int Sums, int Unsigned, int Signed>
void add_products() {
  static_assert(Sums != Unsigned && Unsigned != Signed && Signed != Sums);
  Tile& sums = tile(Sums);
  const Tile& left = tile(Unsigned);
  const Tile& right = tile(Signed);
  require(sums.rows == left.rows && sums.row_bytes == right.row_bytes &&
              left.row_bytes == 4 * right.rows && sums.row_bytes % 4 == 0,
          "the sizes of a product do not agree");
  for (std::size_t m = 0; m < left.rows; ++m) {
    for (std::size_t n = 0; n < sums.row_bytes; n += 4) {
      std::uint32_t sum;
      std::memcpy(&sum, &sums.bytes[m][n], sizeof sum);
      for (std::size_t k = 0; k < right.rows; ++k) {
        for (std::size_t i = 0; i < 4; ++i) {
          const int factor = left.bytes[m][4 * k + i];
          sum +=
              static_cast<std::uint32_t>(factor * static_cast<std::int8_t>(right.bytes[k][n + i]));
        }
      }
      std::memcpy(&sums.bytes[m][n], &sum, sizeof sum);
    }
  }
  ++num_products;
}

inline bool are_allowed() { return true; }

}  // namespace arenite::amx
