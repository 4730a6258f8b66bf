// Convolutions of 8-bit integers for 64-bit ARM, with dot products of four bytes or without.
#include "kernels/processor.hpp"

#if defined(ARENITE_ARM64)

#include <arm_neon.h>

#include <array>
#include <utility>

#include "kernels/convolution/int8_kernel.hpp"
#include "kernels/parallel.hpp"

namespace arenite {

namespace {

constexpr std::size_t kQuadBytes = kInt8Panel * kInt8Quad;
constexpr std::size_t kParts = kInt8Panel / 4;  // vectors of sums of a panel

#define ARENITE_FOR_DOT_PRODUCTS __attribute__((target("arch=armv8.2-a+dotprod")))

ARENITE_INLINE int8x16_t load_quad(const std::uint8_t* from) {
  return vreinterpretq_s8_s32(vld1q_dup_s32(reinterpret_cast<const std::int32_t*>(from)));
}

// Scaled sums become bytes as `requantise` makes them: integers that are out of bounds saturate on
// the way, and are clamped.
class Requantised {
 public:
  ARENITE_INLINE explicit Requantised(const QuantisedStore& store)
      : zero_(vdupq_n_s16(static_cast<std::int16_t>(store.zero_point))),
        min_(vdupq_n_s16(static_cast<std::int16_t>(store.min))),
        max_(vdupq_n_s16(static_cast<std::int16_t>(store.max))) {}

  ARENITE_INLINE uint8x16_t sixteen(const int32x4_t* sums, const float* scales) const {
    return vuzp1q_u8(eight(sums, scales), eight(sums + 2, scales + 8));
  }

  // In the even bytes.
  ARENITE_INLINE uint8x16_t eight(const int32x4_t* sums, const float* scales) const {
    const int16x4_t low = vqmovn_s32(nearest(sums[0], scales));
    const int16x8_t all = vqmovn_high_s32(low, nearest(sums[1], scales + 4));
    return vreinterpretq_u8_s16(vminq_s16(vmaxq_s16(vqaddq_s16(all, zero_), min_), max_));
  }

 private:
  ARENITE_INLINE static int32x4_t nearest(int32x4_t sums, const float* scales) {
    return vcvtnq_s32_f32(vmulq_f32(vcvtq_f32_s32(sums), vld1q_f32(scales)));
  }

  int16x8_t zero_;
  int16x8_t min_;
  int16x8_t max_;
};

template <std::size_t Pixels>
ARENITE_INLINE void begin_sums(const Int8Tile& tile, std::size_t pixel,
                               int32x4_t (&sums)[Pixels][kParts]) {
#pragma GCC unroll 5
  for (std::size_t p = 0; p < Pixels; ++p) {
    const std::int32_t* from = tile.is_first ? tile.start : tile.sums + (pixel + p) * kInt8Block;
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
        vst1q_s32(tile.sums + (pixel + p) * kInt8Block + 4 * j, sums[p][j]);
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
#pragma GCC unroll 2
    for (std::size_t j = 0; j < kParts; j += 2) {
      int8x16_t a[2] = {vld1q_s8(weights + 16 * j), vld1q_s8(weights + 16 * j + 16)};
      asm("" : "+w"(a[0]), "+w"(a[1]));  // loaded as a pair
      weights += kQuadBytes;
      int8x16_t b[2] = {vld1q_s8(weights + 16 * j), vld1q_s8(weights + 16 * j + 16)};
      asm("" : "+w"(b[0]), "+w"(b[1]));
      weights -= kQuadBytes;
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

template <std::size_t... Less>
constexpr std::array<MakeInt8Pixels, kMostPixels> with_dots(std::index_sequence<Less...>) {
  return {make_with_dots<Less + 1>...};
}

template <std::size_t... Less>
constexpr std::array<MakeInt8Pixels, kMostPixels> without(std::index_sequence<Less...>) {
  return {make_without<Less + 1>...};
}

constexpr auto kWithDots = with_dots(std::make_index_sequence<kMostPixels>());
constexpr auto kWithout = without(std::make_index_sequence<kMostPixels>());

// The largest window of a depthwise convolution whose weights are widened for all pixels of a row.
constexpr std::size_t kMostTaps = 64;

// Depthwise convolutions: 8 or 16 channels of some pixels together, each tap as 16-bit integers
// less their zero points. `Width` and `Stride` are those of the window where they are known, so
// that pixels share what they read; else 0.
template <bool IsSigned, std::size_t Halves, std::size_t Width, std::size_t Stride>
class DepthwiseRow {
  static constexpr std::size_t kPixels = 4;
  static constexpr std::size_t kSums = 2 * Halves;
  static constexpr std::size_t kChannels = 8 * Halves;
  using Sums = int32x4_t[kSums];

 public:
  ARENITE_INLINE DepthwiseRow(const Int8DepthwiseRows& given, std::size_t channel)
      : given_(given),
        window_(given.convolution.window),
        requantised_(given.convolution.store),
        channel_(channel),
        zero_(given.zero) {
    const std::size_t taps = window_.kernel[0] * window_.kernel[1];
    const int16x8_t zero =
        vdupq_n_s16(static_cast<std::int16_t>(given.convolution.filter_zero_point));
    for (std::size_t t = 0; t < taps; ++t) {
      const std::int8_t* from = given.convolution.filter + t * given.result.channels + channel;
#pragma GCC unroll 2
      for (std::size_t h = 0; h < Halves; ++h) {
        vst1q_s16(weights_[t] + 8 * h, vsubq_s16(vmovl_s8(vld1_s8(from + 8 * h)), zero));
      }
    }
    const QuantisedStore& store = given.convolution.store;
    std::memcpy(scales_, store.scales + channel, sizeof scales_);
    if (store.bias == nullptr) {
      std::memset(bias_, 0, sizeof bias_);
    } else {
      std::memcpy(bias_, store.bias + channel, sizeof bias_);
    }
    std::memset(nothing_, given.zero ^ given.flip, sizeof nothing_);
  }

  // The last pixels may be made twice, to the same bytes.
  void make(std::size_t row) const {
    const std::size_t columns = given_.result.columns;
    Rows rows;
    rows.count = 0;
    for (std::size_t i = 0; i < window_.kernel[0]; ++i) {
      const std::uint8_t* from = row_under(window_, given_.source, row, i);
      if (from == nullptr) { continue; }
      rows.from[rows.count] = from + channel_;
      rows.weights[rows.count++] = weights_[i * window_.kernel[1]];
    }
    std::uint8_t* to = given_.result.row(row) + channel_;
    if (columns < kPixels) {
      for (std::size_t c = 0; c < columns; ++c) { make_pixels<1, true>(rows, c, to); }
      return;
    }
    for (std::size_t c = 0; c < columns; c += kPixels) {
      const std::size_t column = std::min(c, columns - kPixels);
      const std::int64_t left = window_.place(1, column);
      const std::size_t width = (kPixels - 1) * window_.strides[1] + window_.extent(1);
      if (left >= 0 && static_cast<std::size_t>(left) + width <= given_.source.columns) {
        make_pixels<kPixels, false>(rows, column, to);
      } else {
        make_pixels<kPixels, true>(rows, column, to);
      }
    }
  }

 private:
  // The rows under a window that lie inside the source.
  struct Rows {
    const std::uint8_t* from[kMostTaps];
    const std::int16_t* weights[kMostTaps];
    std::size_t count;
  };

  ARENITE_INLINE void start(Sums& sums) const {
#pragma GCC unroll 4
    for (std::size_t v = 0; v < kSums; ++v) { sums[v] = vld1q_s32(bias_ + 4 * v); }
  }

  struct Widened {
    int16x8_t halves[Halves];
  };

  ARENITE_INLINE Widened widened(const std::uint8_t* from) const {
    Widened result;
#pragma GCC unroll 2
    for (std::size_t h = 0; h < Halves; ++h) {
      if constexpr (IsSigned) {
        const int8x8_t bytes = vld1_s8(reinterpret_cast<const std::int8_t*>(from) + 8 * h);
        result.halves[h] = vsubl_s8(bytes, vdup_n_s8(static_cast<std::int8_t>(zero_ - 128)));
      } else {
        const auto zero = vdup_n_u8(static_cast<std::uint8_t>(zero_));
        result.halves[h] = vreinterpretq_s16_u16(vsubl_u8(vld1_u8(from + 8 * h), zero));
      }
    }
    return result;
  }

  ARENITE_INLINE static void add(const Widened& source, const Widened& weights, Sums& sums) {
#pragma GCC unroll 2
    for (std::size_t h = 0; h < Halves; ++h) {
      sums[2 * h] =
          vmlal_s16(sums[2 * h], vget_low_s16(source.halves[h]), vget_low_s16(weights.halves[h]));
      sums[2 * h + 1] = vmlal_high_s16(sums[2 * h + 1], source.halves[h], weights.halves[h]);
    }
  }

  ARENITE_INLINE static Widened loaded(const std::int16_t* from) {
    Widened result;
#pragma GCC unroll 2
    for (std::size_t h = 0; h < Halves; ++h) { result.halves[h] = vld1q_s16(from + 8 * h); }
    return result;
  }

  ARENITE_INLINE void store(const Sums& sums, std::uint8_t* to) const {
    if constexpr (Halves == 2) {
      vst1q_u8(to, requantised_.sixteen(sums, scales_));
    } else {
      vst1_u8(to, vmovn_u16(vreinterpretq_u16_u8(requantised_.eight(sums, scales_))));
    }
  }

  // `HasEdge`: columns of the windows may lie outside the source.
  template <std::size_t Pixels, bool HasEdge>
  ARENITE_INLINE void make_pixels(const Rows& rows, std::size_t column, std::uint8_t* to) const {
    Sums sums[Pixels];
#pragma GCC unroll 4
    for (std::size_t p = 0; p < Pixels; ++p) { start(sums[p]); }
    const auto pixel = static_cast<std::int64_t>(given_.source.pixel_stride);
    const std::int64_t left = window_.place(1, column);
    for (std::size_t i = 0; i < rows.count; ++i) {
      const std::uint8_t* from = rows.from[i];
      const std::int16_t* weights = rows.weights[i];
      const auto at = [&](std::int64_t x) {
        return !HasEdge || is_column(x) ? from + x * pixel : nothing_;
      };
      if constexpr (Width != 0) {
        Widened factors[Width];
#pragma GCC unroll 3
        for (std::size_t j = 0; j < Width; ++j) { factors[j] = loaded(weights + j * kChannels); }
#pragma GCC unroll 9
        for (std::size_t x = 0; x < (Pixels - 1) * Stride + Width; ++x) {
          const Widened source = widened(at(left + static_cast<std::int64_t>(x)));
#pragma GCC unroll 4
          for (std::size_t p = 0; p < Pixels; ++p) {
            if (x >= p * Stride && x - p * Stride < Width) {
              add(source, factors[x - p * Stride], sums[p]);
            }
          }
        }
      } else {
        const std::int64_t stride = window_.strides[1];
        std::int64_t x = left;
        for (std::size_t j = 0; j < window_.kernel[1]; ++j) {
          const Widened factors = loaded(weights + j * kChannels);
#pragma GCC unroll 4
          for (std::size_t p = 0; p < Pixels; ++p) {
            add(widened(at(x + static_cast<std::int64_t>(p) * stride)), factors, sums[p]);
          }
          x += window_.dilations[1];
        }
      }
    }
    to += column * given_.result.pixel_stride;
#pragma GCC unroll 4
    for (std::size_t p = 0; p < Pixels; ++p) {
      store(sums[p], to);
      to += given_.result.pixel_stride;
    }
  }

  ARENITE_INLINE bool is_column(std::int64_t x) const {
    return static_cast<std::size_t>(x) < given_.source.columns;
  }

  const Int8DepthwiseRows& given_;
  const SlidingWindow& window_;
  Requantised requantised_;
  std::size_t channel_;
  std::int32_t zero_;
  std::int16_t weights_[kMostTaps][kChannels];
  std::int32_t bias_[kChannels];
  float scales_[kChannels];
  std::uint8_t nothing_[kChannels];  // a pixel of the padding
};

// Windows of 3 x 3 of 16 signed channels, by dot products: the three rows of a column lie side by
// side for each channel, with a fourth that is not used.
template <std::size_t Stride>
class DotRows {
  struct Column {
    int8x16_t parts[kParts];
  };

 public:
  ARENITE_FOR_DOT_PRODUCTS DotRows(const Int8DepthwiseRows& given, std::size_t channel)
      : given_(given), requantised_(given.convolution.store), channel_(channel) {
    const QuantisedStore& store = given.convolution.store;
    const std::int8_t* filter = given.convolution.filter + channel;
    const std::size_t step = given.result.channels;
    const int32x4_t zero = vdupq_n_s32(128 - given.zero);
    for (std::size_t v = 0; v < kParts; ++v) {
      start_[v] = store.bias == nullptr ? vdupq_n_s32(0) : vld1q_s32(store.bias + channel + 4 * v);
    }
    for (std::size_t j = 0; j < 3; ++j) {
      weights_[j] = interleaved(vld1q_s8(filter + j * step), vld1q_s8(filter + (3 + j) * step),
                                vld1q_s8(filter + (6 + j) * step));
      for (std::size_t v = 0; v < kParts; ++v) {
        const int32x4_t sums = vdotq_s32(vdupq_n_s32(0), weights_[j].parts[v], vdupq_n_s8(1));
        start_[v] = vmlaq_s32(start_[v], sums, zero);
      }
    }
    std::memcpy(scales_, store.scales + channel, sizeof scales_);
    std::memset(nothing_, given.zero ^ given.flip, sizeof nothing_);
  }

  ARENITE_FOR_DOT_PRODUCTS void make(std::size_t row) const {
    const auto& window = given_.convolution.window;
    const std::uint8_t* from[3];
    std::int64_t steps[3];
    for (std::size_t i = 0; i < 3; ++i) {
      const std::uint8_t* found = row_under(window, given_.source, row, i);
      from[i] = found == nullptr ? nothing_ : found + channel_;
      steps[i] = found == nullptr ? 0 : static_cast<std::int64_t>(given_.source.pixel_stride);
    }
    const auto columns = static_cast<std::int64_t>(given_.source.columns);
    const auto column = [&](std::int64_t x) ARENITE_FOR_DOT_PRODUCTS {
      const bool is_inside = static_cast<std::uint64_t>(x) < static_cast<std::uint64_t>(columns);
      const auto bytes = [&](std::size_t i) {
        const std::uint8_t* at = is_inside ? from[i] + x * steps[i] : nothing_;
        return vld1q_s8(reinterpret_cast<const std::int8_t*>(at));
      };
      return interleaved(bytes(0), bytes(1), bytes(2));
    };
    std::uint8_t* to = given_.result.row(row) + channel_;
    const std::size_t step = given_.result.pixel_stride;
    const std::size_t count = given_.result.columns;
    std::int64_t x = window.place(1, 0);
    Column first = column(x);
    if constexpr (Stride == 1) {
      Column second = column(x + 1);
      std::size_t c = 0;
      for (; c + 2 < count; c += 3) {
        const Column third = column(x + 2);
        store(first, second, third, to);
        first = column(x + 3);
        store(second, third, first, to + step);
        second = column(x + 4);
        store(third, first, second, to + 2 * step);
        to += 3 * step;
        x += 3;
      }
      if (c < count) {
        const Column third = column(x + 2);
        store(first, second, third, to);
        if (c + 1 < count) { store(second, third, column(x + 3), to + step); }
      }
    } else {
      for (std::size_t c = 0; c < count; ++c) {
        const Column third = column(x + 2);
        store(first, column(x + 1), third, to);
        first = third;
        to += step;
        x += 2;
      }
    }
  }

 private:
  ARENITE_INLINE static Column interleaved(int8x16_t a, int8x16_t b, int8x16_t c) {
    const auto low = vreinterpretq_s16_s8(vzip1q_s8(a, b));
    const auto high = vreinterpretq_s16_s8(vzip2q_s8(a, b));
    const int8x16_t nothing = vdupq_n_s8(0);
    const auto low_rest = vreinterpretq_s16_s8(vzip1q_s8(c, nothing));
    const auto high_rest = vreinterpretq_s16_s8(vzip2q_s8(c, nothing));
    return {{vreinterpretq_s8_s16(vzip1q_s16(low, low_rest)),
             vreinterpretq_s8_s16(vzip2q_s16(low, low_rest)),
             vreinterpretq_s8_s16(vzip1q_s16(high, high_rest)),
             vreinterpretq_s8_s16(vzip2q_s16(high, high_rest))}};
  }

  ARENITE_FOR_DOT_PRODUCTS ARENITE_INLINE void store(const Column& a, const Column& b,
                                                     const Column& c, std::uint8_t* to) const {
    int32x4_t sums[kParts];
#pragma GCC unroll 4
    for (std::size_t v = 0; v < kParts; ++v) {
      sums[v] = vdotq_s32(start_[v], a.parts[v], weights_[0].parts[v]);
      sums[v] = vdotq_s32(sums[v], b.parts[v], weights_[1].parts[v]);
      sums[v] = vdotq_s32(sums[v], c.parts[v], weights_[2].parts[v]);
    }
    vst1q_u8(to, requantised_.sixteen(sums, scales_));
  }

  const Int8DepthwiseRows& given_;
  Requantised requantised_;
  std::size_t channel_;
  Column weights_[3];
  int32x4_t start_[kParts];
  float scales_[kInt8Panel];
  std::uint8_t nothing_[kInt8Panel];  // a pixel of the padding
};

template <bool IsSigned, std::size_t Halves>
void make_channels(const Int8DepthwiseRows& given, std::size_t channel) {
  const auto& window = given.convolution.window;
  const auto rows = [&](const auto& maker) {
    for (std::size_t i = 0; i < given.rows.count; ++i) { maker.make(given.rows.first + i); }
  };
  const bool is_known = window.dilations[1] == 1 && window.kernel[1] == 3 && window.strides[1] <= 2;
  if constexpr (IsSigned && Halves == 2) {
    if (is_known && window.kernel[0] == 3 && given.convolution.filter_zero_point == 0 &&
        has_dot_products()) {
      if (window.strides[1] == 1) {
        rows(DotRows<1>(given, channel));
      } else {
        rows(DotRows<2>(given, channel));
      }
      return;
    }
  }
  if (is_known && window.strides[1] == 1) {
    rows(DepthwiseRow<IsSigned, Halves, 3, 1>(given, channel));
  } else if (is_known) {
    rows(DepthwiseRow<IsSigned, Halves, 3, 2>(given, channel));
  } else {
    rows(DepthwiseRow<IsSigned, Halves, 0, 0>(given, channel));
  }
}

// The last channels may be made twice, to the same bytes.
template <bool IsSigned>
void make_depthwise(const Int8DepthwiseRows& given) {
  const std::size_t end = given.channel + given.num_channels;
  std::size_t channel = given.channel;
  for (; channel + 16 <= end; channel += 16) { make_channels<IsSigned, 2>(given, channel); }
  for (; channel + 8 <= end; channel += 8) { make_channels<IsSigned, 1>(given, channel); }
  if (channel < end) { make_channels<IsSigned, 1>(given, end - 8); }
}

}  // namespace

const Int8DepthwiseKernel* int8_depthwise_for_neon(const Int8DepthwiseRows& rows) {
  // All channels of some rows.
  static constexpr Int8DepthwiseKernel kSigned{std::size_t{1} << 16, make_depthwise<true>};
  static constexpr Int8DepthwiseKernel kUnsigned{std::size_t{1} << 16, make_depthwise<false>};
  const auto& window = rows.convolution.window;
  const bool fits = rows.multiplier() == 1 && rows.source.channels >= 8 &&
                    window.kernel[0] * window.kernel[1] <= kMostTaps;
  return !fits ? nullptr : rows.flip != 0 ? &kSigned : &kUnsigned;
}

const Int8Kernel& int8_kernel_for_neon() {
  static const Int8Kernel kernel = [] {
    const bool dots = has_dot_products();
    const Int8Tiles tiles =
        Int8Tiles{kInt8Panel, kMostPixels, (dots ? kWithDots : kWithout).data()};
    return Int8Kernel{true,    1,         tiles,       tiles,  copy_int8,
                      nullptr, fill_int8, gather_int8, add_up, dots ? nullptr : has_least};
  }();
  return kernel;
}

}  // namespace arenite

#endif
