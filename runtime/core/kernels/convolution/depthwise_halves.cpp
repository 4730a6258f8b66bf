// Depthwise convolutions of 16-bit floats for ARMv8.2.
#include "kernels/convolution/convolve_halves.hpp"

#if defined(ARENITE_ARM64)
#include <arm_neon.h>

#include <algorithm>

#include "kernels/parallel.hpp"

namespace arenite {

namespace {

constexpr std::size_t kLanes = 8;

#define ARENITE_IN_HALVES __attribute__((target("arch=armv8.2-a+fp16")))
#define ARENITE_TILE __attribute__((always_inline, target("arch=armv8.2-a+fp16")))

const __fp16* numbers(const Half* from) { return reinterpret_cast<const __fp16*>(from); }

// A row of the result and its operands. Strides are in numbers.
struct Strip {
  const SlidingWindow& window;
  const Image<const Half>& source;
  std::size_t row;  // of the result
  PixelSpan under;  // rows of the window that exist
  const Half* filter;
  const Half* bias;
  const Half* addend;
  std::size_t addend_stride;
  Half* result;
  std::size_t result_stride;
  std::size_t channels;
  float min;
  float max;
};

// Reads eight channels and moves on.
ARENITE_TILE inline float16x8_t next(const Half*& from, std::size_t bytes) {
  float16x8_t values;
  asm volatile("ld1 {%0.8h}, [%1], %2" : "=w"(values), "+r"(from) : "r"(bytes) : "memory");
  return values;
}

// Pixels side by side in eight channels, by windows of a width and stride known when this is
// compiled. Up to Columns - 1 pixels may be missing before and behind the source: bits of
// `missing`, from the first and from the last one on.
template <std::size_t Columns, std::size_t Stride, std::size_t Pixels, bool IsInner>
ARENITE_IN_HALVES void make_pixels(const Strip& strip, const Half* const* rows, std::size_t column,
                                   std::ptrdiff_t first, std::uint32_t missing) {
  constexpr std::size_t kRead = (Pixels - 1) * Stride + Columns;
  const std::size_t pixel_bytes = strip.source.pixel_stride * sizeof(Half);
  const std::size_t channels = strip.channels;
  const std::size_t tap_bytes = channels * sizeof(Half);
  const std::size_t num_rows = strip.under.count;
  const std::ptrdiff_t place = first * static_cast<std::ptrdiff_t>(strip.source.pixel_stride);
  const Half* const filters = strip.filter;
  const Half* const biases = strip.bias;
  Half* const results = strip.result + column * strip.result_stride;
  const std::size_t result_bytes = strip.result_stride * sizeof(Half);
  const bool has_addend = strip.addend != nullptr;
  const Half* const addends = has_addend ? strip.addend + column * strip.addend_stride : nullptr;
  const std::size_t addend_bytes = strip.addend_stride * sizeof(Half);
  const float16x8_t min = vdupq_n_f16(static_cast<__fp16>(strip.min));
  const float16x8_t max = vdupq_n_f16(static_cast<__fp16>(strip.max));
#pragma GCC unroll 1
  for (std::size_t c = 0; c < channels; c += kLanes) {
    // The last channels once more, if they do not fill vectors.
    const std::size_t channel = std::min(c, channels - kLanes);
    const float16x8_t bias = vld1q_f16(numbers(biases + channel));
    float16x8_t sums[Pixels];
#pragma GCC unroll 8
    for (std::size_t p = 0; p < Pixels; ++p) { sums[p] = bias; }
    const Half* filter = filters + channel;
#pragma GCC unroll 1
    for (std::size_t r = 0; r < num_rows; ++r) {
      float16x8_t taps[Columns];
#pragma GCC unroll 8
      for (std::size_t k = 0; k < Columns; ++k) { taps[k] = next(filter, tap_bytes); }
      const Half* from = rows[r] + place + channel;
#pragma GCC unroll 32
      for (std::size_t read = 0; read < kRead; ++read) {
        constexpr std::size_t kBeside = Columns - 1;
        if (!IsInner && read < kBeside && (missing >> read & 1) != 0) { continue; }
        if (!IsInner && kRead - 1 - read < kBeside &&
            (missing >> (kBeside + kRead - 1 - read) & 1) != 0) {
          continue;
        }
        const float16x8_t values = next(from, pixel_bytes);
#pragma GCC unroll 8
        for (std::size_t p = 0; p < Pixels; ++p) {
          if (read >= p * Stride && read < p * Stride + Columns) {
            sums[p] = vfmaq_f16(sums[p], values, taps[read - p * Stride]);
          }
        }
      }
    }
    if (has_addend) {
      const Half* addend = addends + channel;
#pragma GCC unroll 8
      for (std::size_t p = 0; p < Pixels; ++p) {
        sums[p] = vaddq_f16(sums[p], next(addend, addend_bytes));
      }
    }
    Half* result = results + channel;
#pragma GCC unroll 8
    for (std::size_t p = 0; p < Pixels; ++p) {
      const float16x8_t kept = vminq_f16(vmaxq_f16(sums[p], min), max);
      asm volatile("st1 {%1.8h}, [%0], %2"
                   : "+r"(result)
                   : "w"(kept), "r"(result_bytes)
                   : "memory");
    }
  }
}

template <std::size_t Columns, std::size_t Stride, std::size_t Pixels>
void make_some(const Strip& strip, const Half* const* rows, std::size_t column) {
  constexpr std::size_t kRead = (Pixels - 1) * Stride + Columns;
  constexpr std::size_t kBeside = Columns - 1;
  const std::int64_t left = strip.window.place(1, column);
  const PixelSpan inner = inside_of(left, kRead, strip.source.columns);
  const std::size_t behind = kRead - inner.first - inner.count;
  const auto first = static_cast<std::ptrdiff_t>(left + static_cast<std::int64_t>(inner.first));
  if (inner.count == kRead) {
    make_pixels<Columns, Stride, Pixels, true>(strip, rows, column, first, 0);
  } else if (Pixels == 1 || (inner.first <= kBeside && behind <= kBeside)) {
    const std::uint32_t missing = ((1u << std::min(inner.first, kBeside)) - 1) |
                                  ((1u << std::min(behind, kBeside)) - 1) << kBeside;
    make_pixels<Columns, Stride, Pixels, false>(strip, rows, column, first, missing);
  } else {
    for (std::size_t p = 0; p < Pixels; ++p) {
      make_some<Columns, Stride, 1>(strip, rows, column + p);
    }
  }
}

template <std::size_t Columns, std::size_t Stride>
void make_known_row(const Strip& strip, const Half* const* rows, std::size_t columns) {
  std::size_t column = 0;
  for (; columns - column >= 7; column += 7) { make_some<Columns, Stride, 7>(strip, rows, column); }
  for (; columns - column >= 3; column += 3) { make_some<Columns, Stride, 3>(strip, rows, column); }
  for (; column < columns; ++column) { make_some<Columns, Stride, 1>(strip, rows, column); }
}

// Any window, pixel by pixel.
ARENITE_IN_HALVES void make_any_row(const Strip& strip, const Half* const* rows,
                                    std::size_t columns) {
  const SlidingWindow& window = strip.window;
  const float16x8_t min = vdupq_n_f16(static_cast<__fp16>(strip.min));
  const float16x8_t max = vdupq_n_f16(static_cast<__fp16>(strip.max));
  for (std::size_t column = 0; column < columns; ++column) {
    const std::int64_t left = window.place(1, column);
    const std::size_t dilation = window.dilations[1];
    const PixelSpan taps = inside_of(left, window.kernel[1], strip.source.columns, dilation);
    const std::size_t first =
        taps.count == 0 ? 0 : static_cast<std::size_t>(left) + taps.first * dilation;
    for (std::size_t c = 0; c < strip.channels; c += kLanes) {
      const std::size_t channel = std::min(c, strip.channels - kLanes);
      float16x8_t sum = vld1q_f16(numbers(strip.bias + channel));
      for (std::size_t r = 0; r < strip.under.count; ++r) {
        const Half* from = rows[r] + first * strip.source.pixel_stride + channel;
        const Half* filter =
            strip.filter + (r * window.kernel[1] + taps.first) * strip.channels + channel;
        for (std::size_t k = 0; k < taps.count; ++k) {
          sum = vfmaq_f16(sum, vld1q_f16(numbers(from)), vld1q_f16(numbers(filter)));
          from += dilation * strip.source.pixel_stride;
          filter += strip.channels;
        }
      }
      if (strip.addend != nullptr) {
        const Half* const addend = strip.addend + column * strip.addend_stride + channel;
        sum = vaddq_f16(sum, vld1q_f16(numbers(addend)));
      }
      sum = vminq_f16(vmaxq_f16(sum, min), max);
      vst1q_f16(reinterpret_cast<__fp16*>(strip.result + column * strip.result_stride + channel),
                sum);
    }
  }
}

using MakeRow = void (*)(const Strip&, const Half* const* rows, std::size_t columns);

MakeRow row_maker(const SlidingWindow& window) {
  if (window.dilations[1] == 1) {
    switch (window.kernel[1] * 4 + window.strides[1]) {
      case 3 * 4 + 1: return make_known_row<3, 1>;
      case 3 * 4 + 2: return make_known_row<3, 2>;
      case 5 * 4 + 1: return make_known_row<5, 1>;
      case 5 * 4 + 2: return make_known_row<5, 2>;
      default: break;
    }
  }
  return make_any_row;
}

}  // namespace

void convolve_depthwise_halves(const HalfDepthwise& convolution, const Image<const Half>& source,
                               const Image<Half>& result, RowRange rows, pthreadpool_t threads) {
  const SlidingWindow& window = convolution.window;
  const HalfStore& store = convolution.store;
  const MakeRow make_row = row_maker(window);
  const std::size_t cost = result.columns * result.channels * window.kernel[0] * window.kernel[1];
  parallel(threads, rows.count, cost, [&](std::size_t first, std::size_t count) {
    for (std::size_t row = rows.first + first; row < rows.first + first + count; ++row) {
      const PixelSpan under =
          inside_of(window.place(0, row), window.kernel[0], source.rows, window.dilations[0]);
      const Half* lying[kMostDepthwiseRows];
      for (std::size_t r = 0; r < under.count; ++r) {
        lying[r] = row_under(window, source, row, under.first + r);
      }
      const bool has_addend = store.addend != nullptr;
      const Strip strip{window,
                        source,
                        row,
                        under,
                        convolution.filter + under.first * window.kernel[1] * result.channels,
                        store.bias,
                        has_addend ? store.addend->row(row) : nullptr,
                        has_addend ? store.addend->pixel_stride : 0,
                        result.row(row),
                        result.pixel_stride,
                        result.channels,
                        store.min,
                        store.max};
      make_row(strip, lying, result.columns);
    }
  });
}

}  // namespace arenite
#endif
