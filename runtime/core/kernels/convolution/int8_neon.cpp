// Convolutions of 8-bit integers for 64-bit ARM, with dot products of four bytes or without.
#include "kernels/processor.hpp"

#if defined(ARENITE_ARM64)

#include <array>
#include <utility>

#include "kernels/convolution/int8_neon.hpp"
#include "kernels/parallel.hpp"

namespace arenite {

namespace {

constexpr std::size_t kQuadBytes = kInt8Panel * kInt8Quad;

ARENITE_INLINE int8x16_t load_quad(const std::uint8_t* from) {
  return vreinterpretq_s8_s32(vld1q_dup_s32(reinterpret_cast<const std::int32_t*>(from)));
}

template <std::size_t Pixels>
ARENITE_INLINE void begin_sums(const Int8Tile& tile, std::size_t pixel,
                               int32x4_t (&sums)[Pixels][kParts]) {
#pragma GCC unroll 5
  for (std::size_t p = 0; p < Pixels; ++p) {
    const std::int32_t* from = tile.is_first ? tile.start : tile.sums_of(pixel + p);
#pragma GCC unroll 4
    for (std::size_t j = 0; j < kParts; ++j) { sums[p][j] = vld1q_s32(from + 4 * j); }
  }
  if (tile.addends != nullptr) {
#pragma GCC unroll 5
    for (std::size_t p = 0; p < Pixels; ++p) {
      const int32x4_t addend = vdupq_n_s32(tile.addends[pixel + p]);
#pragma GCC unroll 4
      for (std::size_t j = 0; j < kParts; ++j) { sums[p][j] = vaddq_s32(sums[p][j], addend); }
    }
  }
}

template <std::size_t Pixels>
ARENITE_INLINE void end_sums(const Int8Tile& tile, std::size_t pixel,
                             const int32x4_t (&sums)[Pixels][kParts]) {
  if (!tile.is_last) {
#pragma GCC unroll 5
    for (std::size_t p = 0; p < Pixels; ++p) {
#pragma GCC unroll 4
      for (std::size_t j = 0; j < kParts; ++j) {
        vst1q_s32(tile.sums_of(pixel + p) + 4 * j, sums[p][j]);
      }
    }
    return;
  }
  const Requantised requantised(tile.store);
  std::uint8_t* to = tile.to + pixel * tile.step_to;
#pragma GCC unroll 5
  for (std::size_t p = 0; p < Pixels; ++p) {
    const uint8x16_t bytes = requantised.sixteen(sums[p], tile.scales);
    if (tile.channels == kInt8Panel) {
      vst1q_u8(to, bytes);
    } else {
      std::uint8_t all[kInt8Panel];
      vst1q_u8(all, bytes);
      std::memcpy(to, all, tile.channels);
    }
    to += tile.step_to;
  }
}

template <std::size_t Pixels>
ARENITE_FOR_DOT_PRODUCTS ARENITE_INLINE void make_some_with_dots(const Int8Tile& tile,
                                                                 std::size_t pixel) {
  int32x4_t sums[Pixels][kParts];
  begin_sums(tile, pixel, sums);
  const std::int8_t* weights = tile.weights;
  const std::size_t step = tile.step;
  const std::size_t quads = tile.quads;
  for (std::size_t run = 0; run < tile.num_runs; ++run) {
    const std::uint8_t* from = tile.runs[run] + pixel * step;
    std::size_t q = 0;
    for (; q + 4 <= quads; q += 4) {
      int8x16_t source[Pixels];
#pragma GCC unroll 5
      for (std::size_t p = 0; p < Pixels; ++p) {
        source[p] = vld1q_s8(reinterpret_cast<const std::int8_t*>(from + p * step));
      }
#define ARENITE_QUAD(LANE)                                                         \
  {                                                                                \
    const int8x16x4_t factors = vld1q_s8_x4(weights + LANE * kQuadBytes);          \
    _Pragma("GCC unroll 4") for (std::size_t j = 0; j < kParts; ++j) {             \
      _Pragma("GCC unroll 5") for (std::size_t p = 0; p < Pixels; ++p) {           \
        sums[p][j] = vdotq_laneq_s32(sums[p][j], factors.val[j], source[p], LANE); \
      }                                                                            \
    }                                                                              \
  }
      ARENITE_QUAD(0)
      ARENITE_QUAD(1)
      ARENITE_QUAD(2)
      ARENITE_QUAD(3)
#undef ARENITE_QUAD
      from += 4 * kInt8Quad;
      weights += 4 * kQuadBytes;
    }
    for (; q < quads; ++q) {
      int8x16_t source[Pixels];
#pragma GCC unroll 5
      for (std::size_t p = 0; p < Pixels; ++p) { source[p] = load_quad(from + p * step); }
#pragma GCC unroll 4
      for (std::size_t j = 0; j < kParts; ++j) {
        const int8x16_t factors = vld1q_s8(weights + 16 * j);
#pragma GCC unroll 5
        for (std::size_t p = 0; p < Pixels; ++p) {
          sums[p][j] = vdotq_s32(sums[p][j], factors, source[p]);
        }
      }
      from += kInt8Quad;
      weights += kQuadBytes;
    }
  }
  end_sums(tile, pixel, sums);
}

// Registers hold the sums of five pixels, and those of two without dot products.
template <std::size_t Pixels>
ARENITE_FOR_DOT_PRODUCTS void make_with_dots(const Int8Tile& tile, std::size_t pixel) {
  constexpr std::size_t kFirst = Pixels <= 5 ? Pixels : divide_up(Pixels, 2);
  make_some_with_dots<kFirst>(tile, pixel);
  if constexpr (kFirst < Pixels) { make_some_with_dots<Pixels - kFirst>(tile, pixel + kFirst); }
}

// Each vector has the sums of two channels, as two parts side by side.
template <std::size_t Pixels>
struct PairedSums {
  static constexpr std::size_t kVectors = 2 * kParts;

  // A product of bytes fits 16 bits.
  ARENITE_INLINE void add(const std::int8_t* weights, const int8x16_t (&source)[Pixels]) {
    const int8x16x4_t factors = vld1q_s8_x4(weights);
#pragma GCC unroll 4
    for (std::size_t j = 0; j < kParts; ++j) {
#pragma GCC unroll 2
      for (std::size_t p = 0; p < Pixels; ++p) {
        const int16x8_t low = vmull_s8(vget_low_s8(factors.val[j]), vget_low_s8(source[p]));
        sums[p][2 * j] = vpadalq_s16(sums[p][2 * j], low);
        sums[p][2 * j + 1] =
            vpadalq_s16(sums[p][2 * j + 1], vmull_high_s8(factors.val[j], source[p]));
      }
    }
  }

  // A sum of two products does, unless both are (-128) * (-128).
  ARENITE_INLINE void add_two(const std::int8_t* weights, const int8x16_t (&first)[Pixels],
                              const int8x16_t (&second)[Pixels]) {
    const std::int8_t* others = weights + kQuadBytes;
#pragma GCC unroll 2
    for (std::size_t j = 0; j < kParts; j += 2) {
      int8x16_t a[2] = {vld1q_s8(weights + 16 * j), vld1q_s8(weights + 16 * j + 16)};
      asm("" : "+w"(a[0]), "+w"(a[1]));  // loaded as a pair
      int8x16_t b[2] = {vld1q_s8(others + 16 * j), vld1q_s8(others + 16 * j + 16)};
      asm("" : "+w"(b[0]), "+w"(b[1]));
#pragma GCC unroll 2
      for (std::size_t i = 0; i < 2; ++i) {
#pragma GCC unroll 2
        for (std::size_t p = 0; p < Pixels; ++p) {
          int32x4_t* to = sums[p] + 2 * (j + i);
          int16x8_t low = vmull_s8(vget_low_s8(a[i]), vget_low_s8(first[p]));
          int16x8_t high = vmull_high_s8(a[i], first[p]);
          low = vmlal_s8(low, vget_low_s8(b[i]), vget_low_s8(second[p]));
          high = vmlal_high_s8(high, b[i], second[p]);
          to[0] = vpadalq_s16(to[0], low);
          to[1] = vpadalq_s16(to[1], high);
        }
      }
    }
  }

  int32x4_t sums[Pixels][kVectors] = {};
};

template <int Lane>
ARENITE_INLINE int8x16_t quad_of(int8x16_t bytes) {
  return vreinterpretq_s8_s32(vdupq_laneq_s32(vreinterpretq_s32_s8(bytes), Lane));
}

template <std::size_t Pixels>
ARENITE_INLINE void make_some_without(const Int8Tile& tile, std::size_t pixel) {
  PairedSums<Pixels> made;
  const std::int8_t* weights = tile.weights;
  const std::size_t step = tile.step;
  const std::size_t quads = tile.quads;
  for (std::size_t run = 0; run < tile.num_runs; ++run) {
    const std::uint8_t* from = tile.runs[run] + pixel * step;
    std::size_t q = 0;
    for (; !tile.has_least && q + 4 <= quads; q += 4) {
      int8x16_t bytes[Pixels];
      int8x16_t first[Pixels];
      int8x16_t second[Pixels];
#pragma GCC unroll 2
      for (std::size_t p = 0; p < Pixels; ++p) {
        bytes[p] = vld1q_s8(reinterpret_cast<const std::int8_t*>(from + p * step));
        asm("" : "+w"(bytes[p]));  // or GCC loads each quad by itself
        first[p] = quad_of<0>(bytes[p]);
        second[p] = quad_of<1>(bytes[p]);
      }
      made.add_two(weights, first, second);
#pragma GCC unroll 2
      for (std::size_t p = 0; p < Pixels; ++p) {
        first[p] = quad_of<2>(bytes[p]);
        second[p] = quad_of<3>(bytes[p]);
      }
      made.add_two(weights + 2 * kQuadBytes, first, second);
      from += 4 * kInt8Quad;
      weights += 4 * kQuadBytes;
    }
    for (; q < quads; ++q) {
      int8x16_t source[Pixels];
#pragma GCC unroll 2
      for (std::size_t p = 0; p < Pixels; ++p) { source[p] = load_quad(from + p * step); }
      made.add(weights, source);
      from += kInt8Quad;
      weights += kQuadBytes;
    }
  }
  int32x4_t sums[Pixels][kParts];
  begin_sums(tile, pixel, sums);
#pragma GCC unroll 2
  for (std::size_t p = 0; p < Pixels; ++p) {
#pragma GCC unroll 4
    for (std::size_t j = 0; j < kParts; ++j) {
      sums[p][j] = vaddq_s32(sums[p][j], vpaddq_s32(made.sums[p][2 * j], made.sums[p][2 * j + 1]));
    }
  }
  end_sums(tile, pixel, sums);
}

template <std::size_t Pixels>
void make_without(const Int8Tile& tile, std::size_t pixel) {
  if constexpr (Pixels >= 2) {
    for (std::size_t p = 0; p + 2 <= Pixels; p += 2) { make_some_without<2>(tile, pixel + p); }
  }
  if constexpr (Pixels % 2 == 1) { make_some_without<1>(tile, pixel + Pixels - 1); }
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
    return Int8Kernel{true,       1,         tiles,       tiles,  copy_int8,
                      nullptr,    fill_int8, gather_int8, add_up, dots ? nullptr : has_least,
                      finish_int8};
  }();
  return kernel;
}

}  // namespace arenite

#endif
