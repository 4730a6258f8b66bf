// Convolutions of 8-bit integers for 64-bit ARM, with dot products of four bytes or without.
#include "kernels/processor.hpp"

#if defined(ARENITE_ARM64)

#include <array>
#include <utility>

#include "kernels/convolution/int8_neon.hpp"
#include "kernels/parallel.hpp"

namespace arenite {

namespace {

constexpr int kQuadBytes = kInt8Panel * kInt8Quad;

// Four bytes in each part of a vector.
ARENITE_INLINE int8x16_t next_quad(const std::uint8_t*& from) {
  int8x16_t quad;
  asm volatile("ld1r {%0.4s}, [%1], #4" : "=w"(quad), "+r"(from) : : "memory");
  return quad;
}

// `Parts` are all vectors of a panel, or half of them where there are no more channels.
template <Bounds Known, std::size_t Pixels, std::size_t Parts>
ARENITE_INLINE void begin_sums(const Int8Tile& tile, std::size_t pixel,
                               int32x4_t (&sums)[Pixels][Parts]) {
#pragma GCC unroll 5
  for (std::size_t p = 0; p < Pixels; ++p) {
    const std::int32_t* from =
        Known != Bounds::any || tile.is_first ? tile.start : tile.sums_of(pixel + p);
    asm("" : "+r"(from));  // loaded again: that takes fewer instructions than copies
#pragma GCC unroll 4
    for (std::size_t j = 0; j < Parts; ++j) { sums[p][j] = vld1q_s32(from + 4 * j); }
  }
  if (Known == Bounds::any && tile.addends != nullptr) {
#pragma GCC unroll 5
    for (std::size_t p = 0; p < Pixels; ++p) {
      const int32x4_t addend = vdupq_n_s32(tile.addends[pixel + p]);
#pragma GCC unroll 4
      for (std::size_t j = 0; j < Parts; ++j) { sums[p][j] = vaddq_s32(sums[p][j], addend); }
    }
  }
}

template <Bounds Known, std::size_t Pixels, std::size_t Parts>
ARENITE_INLINE void end_sums(const Int8Tile& tile, std::size_t pixel,
                             int32x4_t (&sums)[Pixels][Parts]) {
  if (Known == Bounds::any && !tile.is_last) {
#pragma GCC unroll 5
    for (std::size_t p = 0; p < Pixels; ++p) {
#pragma GCC unroll 4
      for (std::size_t j = 0; j < Parts; ++j) {
        vst1q_s32(tile.sums_of(pixel + p) + 4 * j, sums[p][j]);
      }
    }
    return;
  }
  const Requantised requantised(tile.store);
  uint8x16_t bytes[Pixels];
  if constexpr (Parts == kParts) {
    float32x4_t scales[kParts];
    load_panel(tile.scales, scales);
    requantised.make<Known>(sums, scales, bytes);
  } else {
#pragma GCC unroll 5
    for (std::size_t p = 0; p < Pixels; ++p) {
      const auto halves = vreinterpretq_u16_u8(requantised.eight(sums[p], tile.scales));
      bytes[p] = vcombine_u8(vmovn_u16(halves), vdup_n_u8(0));
    }
  }
  std::uint8_t* to = tile.to + pixel * tile.step_to;
  if (Known != Bounds::any || tile.channels == 4 * Parts) {
#pragma GCC unroll 5
    for (std::size_t p = 0; p < Pixels; ++p) {
      if constexpr (Parts == kParts) {
        vst1q_u8(to, bytes[p]);
      } else {
        vst1_u8(to, vget_low_u8(bytes[p]));
      }
      to += tile.step_to;
    }
  } else {
#pragma GCC unroll 5
    for (std::size_t p = 0; p < Pixels; ++p) {
      std::uint8_t all[kInt8Panel];
      vst1q_u8(all, bytes[p]);
      std::memcpy(to, all, tile.channels);
      to += tile.step_to;
    }
  }
}

// The factors of a quad of depth.
template <std::size_t Parts>
ARENITE_INLINE void load_quad(const std::int8_t*& weights, int8x16_t (&to)[Parts]) {
  if constexpr (Parts == kParts) {
    const int8x16x4_t quad = vld1q_s8_x4(weights);
#pragma GCC unroll 4
    for (std::size_t j = 0; j < Parts; ++j) { to[j] = quad.val[j]; }
  } else {
#pragma GCC unroll 2
    for (std::size_t j = 0; j < Parts; ++j) { to[j] = vld1q_s8(weights + 16 * j); }
  }
  weights += kQuadBytes;
  asm("" : "+r"(weights));  // one instruction loads and steps
}

template <Bounds Known, std::size_t Pixels, std::size_t Parts>
ARENITE_FOR_DOT_PRODUCTS ARENITE_INLINE void make_some_with_dots(const Int8Tile& tile,
                                                                 std::size_t pixel) {
  int32x4_t sums[Pixels][Parts];
  begin_sums<Known>(tile, pixel, sums);
  const std::int8_t* weights = tile.weights;
  const std::size_t step = tile.step;
  const std::size_t fours = tile.quads / 4;
  for (std::size_t run = 0; run < tile.num_runs; ++run) {
    const std::uint8_t* from[Pixels];
    from[0] = tile.runs[run] + pixel * step;
#pragma GCC unroll 5
    for (std::size_t p = 1; p < Pixels; ++p) { from[p] = from[p - 1] + step; }
    for (std::size_t i = fours; i != 0; --i) {
      int8x16_t source[Pixels];
#pragma GCC unroll 5
      for (std::size_t p = 0; p < Pixels; ++p) {
        asm volatile("ldr %q0, [%1], #16" : "=w"(source[p]), "+r"(from[p]) : : "memory");
      }
#define ARENITE_QUAD(LANE)                                                     \
  {                                                                            \
    int8x16_t factors[Parts];                                                  \
    load_quad(weights, factors);                                               \
    _Pragma("GCC unroll 4") for (std::size_t j = 0; j < Parts; ++j) {          \
      _Pragma("GCC unroll 5") for (std::size_t p = 0; p < Pixels; ++p) {       \
        sums[p][j] = vdotq_laneq_s32(sums[p][j], factors[j], source[p], LANE); \
      }                                                                        \
    }                                                                          \
  }
      ARENITE_QUAD(0)
      ARENITE_QUAD(1)
      ARENITE_QUAD(2)
      ARENITE_QUAD(3)
#undef ARENITE_QUAD
    }
    for (std::size_t i = tile.quads % 4; i != 0; --i) {
      int8x16_t factors[Parts];
      load_quad(weights, factors);
      int8x16_t source[Pixels];
#pragma GCC unroll 5
      for (std::size_t p = 0; p < Pixels; ++p) { source[p] = next_quad(from[p]); }
#pragma GCC unroll 4
      for (std::size_t j = 0; j < Parts; ++j) {
#pragma GCC unroll 5
        for (std::size_t p = 0; p < Pixels; ++p) {
          sums[p][j] = vdotq_s32(sums[p][j], factors[j], source[p]);
        }
      }
    }
  }
  end_sums<Known>(tile, pixel, sums);
}

// Registers hold the sums of five pixels, and those of two without dot products.
template <Bounds Known, std::size_t Pixels, std::size_t Parts>
ARENITE_FOR_DOT_PRODUCTS ARENITE_INLINE void make_all_with_dots(const Int8Tile& tile,
                                                                std::size_t pixel) {
  constexpr std::size_t kFirst = Pixels <= 5 ? Pixels : divide_up(Pixels, 2);
  constexpr std::size_t kTimes = Pixels / kFirst;  // a loop: less code
  for (std::size_t i = 0; i < kTimes; ++i) {
    make_some_with_dots<Known, kFirst, Parts>(tile, pixel + i * kFirst);
  }
  if constexpr (kTimes * kFirst < Pixels) {
    make_some_with_dots<Known, Pixels - kTimes * kFirst, Parts>(tile, pixel + kTimes * kFirst);
  }
}

template <std::size_t Pixels>
ARENITE_FOR_DOT_PRODUCTS void make_with_dots(const Int8Tile& tile, std::size_t pixel) {
  if (tile.channels <= kInt8Panel / 2) {
    make_all_with_dots<Bounds::any, Pixels, kParts / 2>(tile, pixel);
    return;
  }
  switch (tile.bounds) {
    case Bounds::any: return make_all_with_dots<Bounds::any, Pixels, kParts>(tile, pixel);
    case Bounds::int8: return make_all_with_dots<Bounds::int8, Pixels, kParts>(tile, pixel);
    case Bounds::small_int8:
      return make_all_with_dots<Bounds::small_int8, Pixels, kParts>(tile, pixel);
  }
}

template <int Offset>
ARENITE_INLINE void load_two(const std::int8_t* from, int8x16_t (&to)[2]) {
  asm volatile("ldp %q0, %q1, [%2, %3]"
               : "=w"(to[0]), "=w"(to[1])
               : "r"(from), "i"(Offset)
               : "memory");
}

template <int Bytes>
ARENITE_INLINE void load_two_and_step(const std::int8_t*& from, int8x16_t (&to)[2]) {
  asm volatile("ldp %q0, %q1, [%2], %3"
               : "=w"(to[0]), "=w"(to[1]), "+r"(from)
               : "i"(Bytes)
               : "memory");
}

// Each vector has the sums of two channels, as two parts side by side.
template <std::size_t Pixels, std::size_t Parts>
class PairedSums {
  // Products of two parts of a panel: a product of bytes fits 16 bits.
  struct Products {
    int16x8_t low[2][Pixels];
    int16x8_t high[2][Pixels];
  };

 public:
  ARENITE_INLINE explicit PairedSums(const int32x4_t (&start)[Pixels][Parts]) {
#pragma GCC unroll 2
    for (std::size_t p = 0; p < Pixels; ++p) {
#pragma GCC unroll 4
      for (std::size_t j = 0; j < Parts; ++j) {
        const uint32x4_t from = vreinterpretq_u32_s32(start[p][j]);
        sums_[p][2 * j] = vreinterpretq_s32_u64(vmovl_u32(vget_low_u32(from)));
        sums_[p][2 * j + 1] = vreinterpretq_s32_u64(vmovl_high_u32(from));
      }
    }
  }

  ARENITE_INLINE void add_quad(const std::int8_t*& weights, const std::uint8_t* (&from)[Pixels]) {
    int8x16_t factors[2];
    int8x16_t source[Pixels];
    Products products;
    load_two_and_step<kQuadBytes>(weights, factors);
    load(from, source);
    multiply<0>(factors, source, products);
    multiply<1>(factors, source, products);
    if constexpr (Parts == kParts) { load_two<-32>(weights, factors); }
    add<0>(products);
    add<1>(products);
    if constexpr (Parts == kParts) {
      multiply<0>(factors, source, products);
      multiply<1>(factors, source, products);
      add<2>(products);
      add<3>(products);
    }
  }

  // A sum of two products fits, unless both are (-128) * (-128). Weights are loaded as soon as
  // there are registers for them.
  ARENITE_INLINE void add_two_quads(const std::int8_t*& weights,
                                    const std::uint8_t* const (&from)[Pixels],
                                    std::ptrdiff_t& offset) {
    int8x16_t factors[2];
    int8x16_t others[2];
    int8x16_t first[Pixels];
    int8x16_t second[Pixels];
    Products products;
    load_halves(from, offset, second);
    load_two<0>(weights, factors);
    load_two<kQuadBytes>(weights, others);
    asm volatile("add %0, %0, %1" : "+r"(offset) : "i"(2 * kInt8Quad));
#pragma GCC unroll 2
    for (std::size_t p = 0; p < Pixels; ++p) { first[p] = ordered::all_of<0>(second[p]); }
#pragma GCC unroll 2
    for (std::size_t p = 0; p < Pixels; ++p) { second[p] = ordered::all_of<1>(second[p]); }
    multiply<0>(factors, first, products);
    multiply<1>(factors, first, products);
    multiply_and_add<0>(others, second, products);
    if constexpr (Parts == kParts) { load_two<32>(weights, factors); }
    multiply_and_add<1>(others, second, products);
    add<0>(products);
    if constexpr (Parts == kParts) { load_two<kQuadBytes + 32>(weights, others); }
    asm volatile("add %0, %0, %1" : "+r"(weights) : "i"(2 * kQuadBytes));
    add<1>(products);
    if constexpr (Parts == kParts) {
      multiply<0>(factors, first, products);
      multiply<1>(factors, first, products);
      multiply_and_add<0>(others, second, products);
      multiply_and_add<1>(others, second, products);
      add<2>(products);
      add<3>(products);
    }
  }

  ARENITE_INLINE int32x4_t sum(std::size_t pixel, std::size_t part) const {
    return vpaddq_s32(sums_[pixel][2 * part], sums_[pixel][2 * part + 1]);
  }

 private:
  ARENITE_INLINE static void load(const std::uint8_t* (&from)[Pixels],
                                  int8x16_t (&source)[Pixels]) {
#pragma GCC unroll 2
    for (std::size_t p = 0; p < Pixels; ++p) { source[p] = next_quad(from[p]); }
  }

  // A Cortex-A53 waits for loads that step.
  ARENITE_INLINE static void load_halves(const std::uint8_t* const (&from)[Pixels],
                                         std::ptrdiff_t offset, int8x16_t (&to)[Pixels]) {
#pragma GCC unroll 2
    for (std::size_t p = 0; p < Pixels; ++p) {
      asm volatile("ldr %d0, [%1, %2]" : "=w"(to[p]) : "r"(from[p]), "r"(offset) : "memory");
    }
  }

  template <std::size_t Index>
  ARENITE_INLINE static void multiply(const int8x16_t (&factors)[2],
                                      const int8x16_t (&source)[Pixels], Products& products) {
#pragma GCC unroll 2
    for (std::size_t p = 0; p < Pixels; ++p) {
      products.low[Index][p] = ordered::low_products(factors[Index], source[p]);
      products.high[Index][p] = ordered::high_products(factors[Index], source[p]);
    }
  }

  template <std::size_t Index>
  ARENITE_INLINE static void multiply_and_add(const int8x16_t (&factors)[2],
                                              const int8x16_t (&source)[Pixels],
                                              Products& products) {
#pragma GCC unroll 2
    for (std::size_t p = 0; p < Pixels; ++p) {
      ordered::add_low_products(products.low[Index][p], factors[Index], source[p]);
      ordered::add_high_products(products.high[Index][p], factors[Index], source[p]);
    }
  }

  template <std::size_t Part>
  ARENITE_INLINE void add(const Products& products) {
#pragma GCC unroll 2
    for (std::size_t p = 0; p < Pixels; ++p) {
      ordered::add_neighbours(sums_[p][2 * Part], products.low[Part % 2][p]);
      ordered::add_neighbours(sums_[p][2 * Part + 1], products.high[Part % 2][p]);
    }
  }

  int32x4_t sums_[Pixels][2 * Parts];
};

template <Bounds Known, std::size_t Pixels, std::size_t Parts>
ARENITE_INLINE void make_some_without(const Int8Tile& tile, std::size_t pixel) {
  int32x4_t sums[Pixels][Parts];
  begin_sums<Known>(tile, pixel, sums);
  PairedSums<Pixels, Parts> made(sums);
  const std::int8_t* weights = tile.weights;
  const std::size_t pairs = tile.has_least ? 0 : tile.quads / 2;
  const std::size_t singles = tile.quads - 2 * pairs;
  for (std::size_t run = 0; run < tile.num_runs; ++run) {
    const std::uint8_t* from[Pixels];
    from[0] = tile.runs[run] + pixel * tile.step;
    if constexpr (Pixels == 2) { from[1] = from[0] + tile.step; }
    const std::size_t bytes = 2 * kInt8Quad * pairs;
#pragma GCC unroll 2
    for (std::size_t p = 0; p < Pixels; ++p) { from[p] += bytes; }
    auto offset = -static_cast<std::ptrdiff_t>(bytes);
    while (offset != 0) { made.add_two_quads(weights, from, offset); }
    for (std::size_t i = singles; i != 0; --i) { made.add_quad(weights, from); }
  }
#pragma GCC unroll 2
  for (std::size_t p = 0; p < Pixels; ++p) {
#pragma GCC unroll 4
    for (std::size_t j = 0; j < Parts; ++j) { sums[p][j] = made.sum(p, j); }
  }
  end_sums<Known>(tile, pixel, sums);
}

template <Bounds Known, std::size_t Pixels, std::size_t Parts>
ARENITE_INLINE void make_all_without(const Int8Tile& tile, std::size_t pixel) {
  for (std::size_t p = 0; p + 2 <= Pixels; p += 2) {
    make_some_without<Known, 2, Parts>(tile, pixel + p);
  }
  if constexpr (Pixels % 2 == 1) { make_some_without<Known, 1, Parts>(tile, pixel + Pixels - 1); }
}

template <std::size_t Pixels>
void make_without(const Int8Tile& given, std::size_t pixel) {
  const Int8Tile tile = given;  // whose members stay in registers
  if (tile.channels <= kInt8Panel / 2) {
    make_all_without<Bounds::any, Pixels, kParts / 2>(tile, pixel);
  } else if (tile.bounds == Bounds::any) {
    make_all_without<Bounds::any, Pixels, kParts>(tile, pixel);
  } else {
    make_all_without<Bounds::int8, Pixels, kParts>(tile, pixel);
  }
}

bool has_least(const std::int8_t* weights, std::size_t quads) {
  int8x16_t least = vdupq_n_s8(0);
  for (std::size_t q = 0; q < quads; ++q) {
    const int8x16x4_t quad = vld1q_s8_x4(weights + q * kQuadBytes);
    least = vminq_s8(
        least, vminq_s8(vminq_s8(quad.val[0], quad.val[1]), vminq_s8(quad.val[2], quad.val[3])));
  }
  return vminvq_s8(least) == -128;
}

// Runs of a multiple of 4 bytes; the sum is of signed bytes.
std::uint32_t add_up(const std::uint8_t* from, std::size_t quads) {
  int32x4_t sums = vdupq_n_s32(0);
  std::size_t q = 0;
  for (; q + 4 <= quads; q += 4) {
    const int8x16_t bytes = vld1q_s8(reinterpret_cast<const std::int8_t*>(from) + q * kInt8Quad);
    sums = vpadalq_s16(sums, vpaddlq_s8(bytes));
  }
  return static_cast<std::uint32_t>(vaddvq_s32(sums)) +
         add_up_int8<std::int8_t>(from + q * kInt8Quad, quads - q);
}

constexpr std::size_t kMostPixels = 10;

template <bool HasDots, std::size_t... Less>
constexpr std::array<MakeInt8Pixels, kMostPixels> pixel_kernels(std::index_sequence<Less...>) {
  return {(HasDots ? make_with_dots<Less + 1> : make_without<Less + 1>)...};
}

constexpr auto kWithDots = pixel_kernels<true>(std::make_index_sequence<kMostPixels>());
constexpr auto kWithout = pixel_kernels<false>(std::make_index_sequence<kMostPixels>());

}  // namespace

const Int8Kernel& int8_kernel_for_neon() {
  static const Int8Kernel kernel = [] {
    const bool dots = has_dot_products();
    const Int8Tiles tiles =
        Int8Tiles{kInt8Panel, kMostPixels, (dots ? kWithDots : kWithout).data()};
    return Int8Kernel{true,        1,         tiles,       tiles,  copy_int8,
                      nullptr,     fill_int8, gather_int8, add_up, dots ? nullptr : has_least,
                      finish_int8, dots};
  }();
  return kernel;
}

}  // namespace arenite

#endif
