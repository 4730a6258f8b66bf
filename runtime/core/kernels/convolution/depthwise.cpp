#include <limits>

#include "kernels/highway_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/convolution/depthwise.cpp"
#include "hwy/foreach_target.h"
// After them: compiled for each kind of processor.
#include "kernels/convolution/depthwise.hpp"
#include "kernels/convolution/depthwise_pixels_neon.hpp"
#include "kernels/lanes.hpp"
#include "kernels/parallel.hpp"

HWY_BEFORE_NAMESPACE();
namespace arenite {
namespace HWY_NAMESPACE {
namespace {

// A row of the result and its operands. Strides are in floats.
struct Strip {
  // The first row under the window that exists; with offsets, what they are counted from.
  const float* source;
  const std::uint64_t*
      row_offsets;          // bytes, from that row on; a zero where rows are row_step apart
  std::size_t row_step;     // from a row under the window to the next; 0 with offsets
  std::size_t offset_step;  // the same in offsets; 0 without
  std::size_t num_rows;     // under the window that exist
  std::size_t source_columns;
  std::size_t result_columns;
  std::size_t pixel_stride;  // of the source
  std::ptrdiff_t margin;     // pixels left of the source
  std::size_t stride;        // pixels from a window to the next
  std::size_t dilation;      // pixels from a tap to the next
  const float* filter;       // of the first row that exists
  std::size_t window_columns;
  std::size_t channels;       // of the result
  std::size_t first_channel;  // that are made, of the result
  std::size_t end_channel;
  std::size_t multiplier;  // channels of the result for each of the source
  const float* bias;
  const float* addend;
  std::size_t addend_stride;
  float* result;
  std::size_t result_stride;
  float min;
  float max;
};

// Channels of the result that are made together, and how they are read and written from a place in
// the source or the result on.
struct WholeLanes {
  std::size_t channel;

  ARENITE_LANE std::size_t in_source() const { return channel; }
  ARENITE_LANE std::size_t in_result() const { return channel; }
  ARENITE_LANE Lanes source(const float* pixel, std::size_t part) const {
    return load(pixel + part * kLanes);
  }
  ARENITE_LANE Lanes values(const float* row, std::size_t part) const {
    return load(row + part * kLanes);
  }
  template <std::size_t Parts>
  ARENITE_LANE void all_values(const float* row, Lanes (&values)[Parts]) const {
    load_all(row, values);
  }
  // The same, and moves on to the next pixel.
  template <std::size_t Parts>
  ARENITE_LANE void next_values(const float*& row, std::size_t step, Lanes (&values)[Parts]) const {
    load_all_and_step(row, step, values);
  }
  template <std::size_t Parts>
  ARENITE_LANE void keep(const Lanes (&values)[Parts], float* row) const {
    store_all(values, row);
  }
};

struct SomeLanes {
  std::size_t channel;
  std::size_t count;

  ARENITE_LANE std::size_t in_source() const { return channel; }
  ARENITE_LANE std::size_t in_result() const { return channel; }
  ARENITE_LANE Lanes source(const float* pixel, std::size_t) const {
    return load_some(pixel, count);
  }
  ARENITE_LANE Lanes values(const float* row, std::size_t) const { return load_some(row, count); }
  ARENITE_LANE void all_values(const float* row, Lanes (&values)[1]) const {
    values[0] = load_some(row, count);
  }
  ARENITE_LANE void next_values(const float*& row, std::size_t step, Lanes (&values)[1]) const {
    all_values(row, values);
    row += step;
  }
  ARENITE_LANE void keep(const Lanes (&values)[1], float* row) const {
    store_some(values[0], row, count);
  }
};

// Several channels of the result are made from each of the source.
struct SpreadLanes {
  SomeLanes made;
  std::size_t channels[kLanes];

  ARENITE_LANE std::size_t in_source() const { return 0; }
  ARENITE_LANE std::size_t in_result() const { return made.channel; }
  ARENITE_LANE Lanes source(const float* pixel, std::size_t) const {
    float floats[kLanes];
#pragma GCC unroll 16
    for (std::size_t i = 0; i < kLanes; ++i) { floats[i] = pixel[channels[i]]; }
    return load(floats);
  }
  ARENITE_LANE Lanes values(const float* row, std::size_t) const { return made.values(row, 0); }
  ARENITE_LANE void keep(const Lanes (&values)[1], float* row) const { made.keep(values, row); }
};

// Adds a row of taps to sums of pixels side by side, whatever the window.
template <typename Channels>
struct AnyTaps {
  const Strip& strip;
  const Channels& channels;
  const PixelSpan& taps;

  template <std::size_t Pixels, std::size_t Parts>
  ARENITE_LANE void add(const float* source, const float* filter,
                        Lanes (&sums)[Pixels][Parts]) const {
    for (std::size_t k = taps.first; k < taps.first + taps.count; ++k) {
#pragma GCC unroll 4
      for (std::size_t part = 0; part < Parts; ++part) {
        const Lanes tap = channels.values(filter + k * strip.channels, part);
#pragma GCC unroll 16
        for (std::size_t p = 0; p < Pixels; ++p) {
          const float* pixel =
              source + (p * strip.stride + k * strip.dilation) * strip.pixel_stride;
          sums[p][part] = multiply_add(channels.source(pixel, part), tap, sums[p][part]);
        }
      }
    }
  }
};

// Adds a row of taps of a window that is known when it is compiled, reading each pixel once for all
// windows that it lies under. So many pixels are missing at each edge; where that is not known when
// this is compiled, only the `inner` ones exist.
constexpr std::size_t kUnknown = ~std::size_t{0};

template <std::size_t Columns, std::size_t Stride, std::size_t Left, std::size_t Right,
          typename Channels>
struct KnownTaps {
  const Strip& strip;
  const Channels& channels;
  const PixelSpan& inner;

  template <std::size_t Pixels, std::size_t Parts>
  ARENITE_LANE void add(const float* source, const float* filter,
                        Lanes (&sums)[Pixels][Parts]) const {
    Lanes taps[Columns][Parts];
#pragma GCC unroll 16
    for (std::size_t k = 0; k < Columns; ++k) {
      channels.all_values(filter, taps[k]);
      filter += strip.channels;
    }
    constexpr std::size_t kRead = (Pixels - 1) * Stride + Columns;
    const std::size_t pixel_stride = strip.pixel_stride;
#pragma GCC unroll 32
    for (std::size_t read = 0; read < kRead; ++read) {
      if (Left == kUnknown ? read - inner.first < inner.count
                           : read >= Left && read + Right < kRead) {
        Lanes values[Parts];
        channels.next_values(source, pixel_stride, values);
#pragma GCC unroll 4
        for (std::size_t part = 0; part < Parts; ++part) {
#pragma GCC unroll 16
          for (std::size_t p = 0; p < Pixels; ++p) {
            if (read >= p * Stride && read < p * Stride + Columns) {
              sums[p][part] =
                  multiply_add(values[part], taps[read - p * Stride][part], sums[p][part]);
            }
          }
        }
      } else {
        source += pixel_stride;
      }
    }
  }
};

// Pixels side by side in a block of channels, from taps of either kind.
template <std::size_t Pixels, std::size_t Parts, typename Taps>
ARENITE_LANE void make_block(const Taps& taps, std::size_t column) {
  const Strip& strip = taps.strip;
  const auto& channels = taps.channels;
  const std::size_t channel = channels.in_result();
  Lanes sums[Pixels][Parts];
#pragma GCC unroll 4
  for (std::size_t part = 0; part < Parts; ++part) {
    const Lanes bias =
        strip.bias == nullptr ? all_lanes(0.0f) : channels.values(strip.bias + channel, part);
#pragma GCC unroll 16
    for (std::size_t p = 0; p < Pixels; ++p) { sums[p][part] = bias; }
  }
  const std::ptrdiff_t left = static_cast<std::ptrdiff_t>(column * strip.stride) - strip.margin;
  const float* source =
      strip.source + left * static_cast<std::ptrdiff_t>(strip.pixel_stride) + channels.in_source();
  const float* filter = strip.filter + channel;
  const std::uint64_t* offset = strip.row_offsets;
  std::size_t row = 0;
  for (std::size_t r = 0; r < strip.num_rows; ++r) {
    taps.add(reinterpret_cast<const float*>(reinterpret_cast<const char*>(source + row) + *offset),
             filter, sums);
    filter += strip.window_columns * strip.channels;
    row += strip.row_step;
    offset += strip.offset_step;
  }
  if (strip.addend != nullptr) {
    const float* addend = strip.addend + column * strip.addend_stride + channel;
#pragma GCC unroll 16
    for (std::size_t p = 0; p < Pixels; ++p) {
#pragma GCC unroll 4
      for (std::size_t part = 0; part < Parts; ++part) {
        sums[p][part] = add(sums[p][part], channels.values(addend, part));
      }
      addend += strip.addend_stride;
    }
  }
  const Lanes min = all_lanes(strip.min);
  const Lanes max = all_lanes(strip.max);
  const std::size_t result_stride = strip.result_stride;
  float* result = strip.result + column * result_stride + channel;
#pragma GCC unroll 16
  for (std::size_t p = 0; p < Pixels; ++p) {
#pragma GCC unroll 4
    for (std::size_t part = 0; part < Parts; ++part) {
      sums[p][part] = clamp(sums[p][part], min, max);
    }
    channels.keep(sums[p], result);
    result += result_stride;
  }
}

// Pixels side by side that have the same taps in the source.
template <std::size_t Parts, typename Channels>
ARENITE_LANE void make_alike(const Strip& strip, const Channels& channels, std::size_t column,
                             std::size_t num_pixels, const PixelSpan& taps) {
  const AnyTaps<Channels> any{strip, channels, taps};
  for (; num_pixels >= 4; num_pixels -= 4, column += 4) { make_block<4, Parts>(any, column); }
  for (; num_pixels > 0; --num_pixels, ++column) { make_block<1, Parts>(any, column); }
}

// Channels that do not fill vectors, or are not those of the source.
HWY_NOINLINE void make_rest(const Strip& strip, std::size_t column, std::size_t num_pixels,
                            const PixelSpan& taps, std::size_t channel) {
  for (; channel < strip.end_channel; channel += kLanes) {
    const std::size_t rest = strip.end_channel - channel;
    const SomeLanes made{channel, rest < kLanes ? rest : kLanes};
    if (strip.multiplier == 1) {
      make_alike<1>(strip, made, column, num_pixels, taps);
      continue;
    }
    SpreadLanes spread{made, {}};
    for (std::size_t i = 0; i < kLanes; ++i) {
      spread.channels[i] = (channel + (i < rest ? i : rest - 1)) / strip.multiplier;
    }
    make_alike<1>(strip, spread, column, num_pixels, taps);
  }
}

// Vectors side by side in a block. Those of SSE and NEON are a quarter of AVX-512's; NEON has as
// many of them.
constexpr std::size_t kParts = kLanes == 4 && HWY_ARCH_ARM_A64 ? 2 : 1;
constexpr std::size_t kTogether = kParts * kLanes;

// Edges apart: there the windows have fewer taps.
HWY_NOINLINE void make_any_row(const Strip& strip, std::size_t end_whole) {
  const std::size_t reach = (strip.window_columns - 1) * strip.dilation;
  PixelSpan inner{0, 0};
  if (strip.source_columns > reach) {
    inner =
        inside_of(-strip.margin, strip.result_columns, strip.source_columns - reach, strip.stride);
  }
  for (std::size_t column = 0; column < strip.result_columns;) {
    const bool is_inner = column - inner.first < inner.count;
    const std::size_t num_pixels = is_inner ? inner.count : 1;
    const std::ptrdiff_t left = static_cast<std::ptrdiff_t>(column * strip.stride) - strip.margin;
    const PixelSpan taps =
        inside_of(left, strip.window_columns, strip.source_columns, strip.dilation);
    for (std::size_t channel = strip.first_channel; channel < end_whole; channel += kTogether) {
      make_alike<kParts>(strip, WholeLanes{channel}, column, num_pixels, taps);
    }
    make_rest(strip, column, num_pixels, taps, end_whole);
    column += num_pixels;
  }
}

template <std::size_t Columns, std::size_t Stride, std::size_t Pixels, std::size_t Left = kUnknown,
          std::size_t Right = kUnknown>
ARENITE_LANE void make_pixels(const Strip& strip, std::size_t column, const PixelSpan& inner,
                              std::size_t end_whole) {
  for (std::size_t channel = strip.first_channel; channel < end_whole; channel += kTogether) {
    const WholeLanes channels{channel};
    const KnownTaps<Columns, Stride, Left, Right, WholeLanes> taps{strip, channels, inner};
    make_block<Pixels, kParts>(taps, column);
  }
}

template <std::size_t Columns, std::size_t Stride, std::size_t Pixels>
ARENITE_LANE void make_rest_of_pixels(const Strip& strip, std::size_t column,
                                      const PixelSpan& inner, std::size_t channel) {
  for (; channel < strip.end_channel; channel += kLanes) {
    const std::size_t rest = strip.end_channel - channel;
    const SomeLanes channels{channel, rest < kLanes ? rest : kLanes};
    const KnownTaps<Columns, Stride, kUnknown, kUnknown, SomeLanes> taps{strip, channels, inner};
    make_block<Pixels, 1>(taps, column);
  }
}

// Maps have seven columns more often than not, or a multiple of them, and as many pixels missing at
// an edge as lie beside the middle of the window.
template <std::size_t Columns, std::size_t Stride>
HWY_NOINLINE void make_known_row(const Strip& strip, std::size_t end_whole) {
  constexpr std::size_t kBeside = Columns / 2;
  for (std::size_t column = 0; column < strip.result_columns;) {
    const std::size_t rest = strip.result_columns - column;
    const std::size_t num_pixels = rest >= 7 ? 7 : rest >= 3 ? 3 : 1;
    const std::size_t read = (num_pixels - 1) * Stride + Columns;
    const std::ptrdiff_t left = static_cast<std::ptrdiff_t>(column * Stride) - strip.margin;
    const PixelSpan inner = inside_of(left, read, strip.source_columns);
    const std::size_t before = inner.first;
    const std::size_t behind = read - inner.first - inner.count;
    if (num_pixels == 1) {
      make_pixels<Columns, Stride, 1>(strip, column, inner, end_whole);
    } else if (num_pixels == 3) {
      make_pixels<Columns, Stride, 3>(strip, column, inner, end_whole);
    } else if (before == 0 && behind == 0) {
      make_pixels<Columns, Stride, 7, 0, 0>(strip, column, inner, end_whole);
    } else if (before == kBeside && behind == 0) {
      make_pixels<Columns, Stride, 7, kBeside, 0>(strip, column, inner, end_whole);
    } else if (before == 0 && behind == kBeside) {
      make_pixels<Columns, Stride, 7, 0, kBeside>(strip, column, inner, end_whole);
    } else if (before == kBeside && behind == kBeside) {
      make_pixels<Columns, Stride, 7, kBeside, kBeside>(strip, column, inner, end_whole);
    } else {
      make_pixels<Columns, Stride, 7>(strip, column, inner, end_whole);
    }
    switch (num_pixels) {
      case 7: make_rest_of_pixels<Columns, Stride, 7>(strip, column, inner, end_whole); break;
      case 3: make_rest_of_pixels<Columns, Stride, 3>(strip, column, inner, end_whole); break;
      default: make_rest_of_pixels<Columns, Stride, 1>(strip, column, inner, end_whole);
    }
    column += num_pixels;
  }
}

void make_row_of_any(const Strip& strip) {
  const std::size_t num_channels = strip.end_channel - strip.first_channel;
  const std::size_t whole = strip.multiplier == 1 ? num_channels / kTogether * kTogether : 0;
  const std::size_t end_whole = strip.first_channel + whole;
  switch (strip.multiplier == 1 && strip.dilation == 1 ? strip.window_columns * 4 + strip.stride
                                                       : 0) {
    case 3 * 4 + 1: make_known_row<3, 1>(strip, end_whole); break;
    case 3 * 4 + 2: make_known_row<3, 2>(strip, end_whole); break;
    case 5 * 4 + 1: make_known_row<5, 1>(strip, end_whole); break;
    case 5 * 4 + 2: make_known_row<5, 2>(strip, end_whole); break;
    default: make_any_row(strip, end_whole);
  }
}

#if HWY_ARCH_ARM_A64
// Makes channels of a row by windows of three columns, from the first on, and returns the first
// that is left.
HWY_NOINLINE std::size_t make_row_of_three(const Strip& strip) {
  constexpr std::size_t kMostRows = 3;
  constexpr std::size_t kBytes = sizeof(float);
  const std::size_t num_channels =
      (strip.end_channel - strip.first_channel) / kChannelsOfThree * kChannelsOfThree;
  const std::ptrdiff_t last =
      static_cast<std::ptrdiff_t>((strip.result_columns - 1) * strip.stride) - strip.margin + 2;
  const auto columns = static_cast<std::ptrdiff_t>(strip.source_columns);
  if (strip.addend != nullptr || strip.num_rows == 0 || strip.num_rows > kMostRows ||
      strip.margin < 0 || strip.margin > 1 || last > columns) {
    return strip.first_channel;
  }
  const float* rows[kMostRows];
  for (std::size_t r = 0; r < strip.num_rows; ++r) {
    rows[r] = reinterpret_cast<const float*>(
        reinterpret_cast<const char*>(strip.source + r * strip.row_step) +
        strip.row_offsets[r * strip.offset_step]);
  }
  static constexpr float kNoBias[kChannelsOfThree] = {};
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  const float limits[2] = {strip.min, strip.max};
  const int flags =
      (strip.min == -kInfinite ? 0 : kHasLeast) | (strip.max == kInfinite ? 0 : kHasLargest);
  PixelsOfThree made{};
  made.rows = rows;
  made.num_rows = strip.num_rows;
  made.pixel_step = strip.pixel_stride * kBytes;
  made.filter = strip.filter + strip.first_channel;
  made.tap_step = strip.channels * kBytes;
  made.bias = strip.bias == nullptr ? kNoBias : strip.bias + strip.first_channel;
  made.result_step = strip.result_stride * kBytes;
  made.limits = limits;
  const std::size_t num_tiles = (strip.result_columns + kPixelsOfThree - 1) / kPixelsOfThree;
  const std::size_t least = strip.result_columns / num_tiles;
  std::size_t larger = strip.result_columns % num_tiles;
  for (std::size_t column = 0; column < strip.result_columns;) {
    const std::size_t num_pixels = larger > 0 ? least + 1 : least;
    if (larger > 0) { --larger; }
    const std::ptrdiff_t left = static_cast<std::ptrdiff_t>(column * strip.stride) - strip.margin;
    const bool lacks_last = column + num_pixels == strip.result_columns && last == columns;
    made.flags = flags | (left < 0 ? kLacksFirst : 0) | (lacks_last ? kLacksLast : 0);
    made.offset =
        (static_cast<std::size_t>(left < 0 ? 0 : left) * strip.pixel_stride + strip.first_channel) *
        kBytes;
    made.result = strip.result + column * strip.result_stride + strip.first_channel;
    kMakeChannels[strip.stride - 1][num_pixels - 1](made, num_channels,
                                                    strip.bias == nullptr ? 0 : kChannelsOfThree);
    column += num_pixels;
  }
  return strip.first_channel + num_channels;
}
#endif

void make_row(Strip& strip) {
#if HWY_ARCH_ARM_A64
  if (strip.multiplier == 1 && strip.dilation == 1 && strip.window_columns == 3 &&
      strip.stride <= 2) {
    const std::size_t first = strip.first_channel;
    strip.first_channel = make_row_of_three(strip);
    if (strip.first_channel < strip.end_channel) { make_row_of_any(strip); }
    strip.first_channel = first;
    return;
  }
#endif
  make_row_of_any(strip);
}

void make_rows(const DepthwiseConvolution& convolution, const Image<const float>& source,
               const Image<float>& result, RowRange rows, std::size_t first_channel,
               std::size_t end_channel) {
  const SlidingWindow& window = convolution.window;
  const FloatStore& kept = convolution.store;
  Strip strip{};
  static constexpr std::uint64_t kZero = 0;
  const bool has_offsets = source.row_offsets != nullptr;
  (has_offsets ? strip.offset_step : strip.row_step) =
      window.dilations[0] * (has_offsets ? 1 : source.row_stride);
  strip.source_columns = source.columns;
  strip.result_columns = result.columns;
  strip.pixel_stride = source.pixel_stride;
  strip.margin = -static_cast<std::ptrdiff_t>(window.place(1, 0));
  strip.stride = window.strides[1];
  strip.dilation = window.dilations[1];
  strip.window_columns = window.kernel[1];
  strip.channels = result.channels;
  strip.first_channel = first_channel;
  strip.end_channel = end_channel;
  strip.multiplier = result.channels / source.channels;
  strip.bias = kept.bias;
  strip.addend_stride = kept.addend == nullptr ? 0 : kept.addend->pixel_stride;
  strip.result_stride = result.pixel_stride;
  strip.min = kept.min;
  strip.max = kept.max;
  for (std::size_t row = rows.first; row < rows.first + rows.count; ++row) {
    const std::int64_t top = window.place(0, row);
    const PixelSpan under = inside_of(top, window.kernel[0], source.rows, window.dilations[0]);
    const std::size_t first = under.count == 0 ? 0 : top + under.first * window.dilations[0];
    strip.source = has_offsets ? source.data : source.row(first);
    strip.row_offsets = has_offsets ? source.row_offsets + first : &kZero;
    strip.num_rows = under.count;
    strip.filter = convolution.filter + under.first * window.kernel[1] * result.channels;
    strip.addend = kept.addend == nullptr ? nullptr : kept.addend->row(row);
    strip.result = result.row(row);
    make_row(strip);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace arenite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace arenite {

void convolve_depthwise(const DepthwiseConvolution& convolution, const Image<const float>& source,
                        const Image<float>& result, RowRange rows, pthreadpool_t threads) {
  static const auto make_rows = ARENITE_COPY(make_rows);
  // Rows under the windows are in the cache when the next row of the result needs them again.
  constexpr std::size_t block = 128;
  const std::size_t blocks = divide_up(result.channels, block);
  const std::size_t cost = result.columns * std::min(block, result.channels) *
                           convolution.window.kernel[0] * convolution.window.kernel[1];
  parallel(threads, blocks * rows.count, cost, [&](std::size_t first, std::size_t count) {
    for (std::size_t done = 0; done < count;) {
      const std::size_t channel = (first + done) / rows.count * block;
      const std::size_t row = (first + done) % rows.count;
      const std::size_t part = std::min(rows.count - row, count - done);
      make_rows(convolution, source, result, {rows.first + row, part}, channel,
                std::min(channel + block, result.channels));
      done += part;
    }
  });
}

}  // namespace arenite
#endif
