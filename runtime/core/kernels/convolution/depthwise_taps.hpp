// Operands of a depthwise convolution, and rows of taps that are added to sums in registers.
#if defined(ARENITE_DEPTHWISE_TAPS) == defined(HWY_TARGET_TOGGLE)  // once for each kind
#ifdef ARENITE_DEPTHWISE_TAPS
#undef ARENITE_DEPTHWISE_TAPS
#else
#define ARENITE_DEPTHWISE_TAPS
#endif

#include "kernels/lanes.hpp"

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

// Channels of the result that are made together, and how they are read and written.
struct WholeLanes {
  std::size_t channel;

  ARENITE_LANE Lanes source(const float* pixel, std::size_t part) const {
    return load(pixel + channel + part * kLanes);
  }
  ARENITE_LANE Lanes values(const float* row, std::size_t part) const {
    return load(row + channel + part * kLanes);
  }
  ARENITE_LANE void keep(Lanes value, float* row, std::size_t part) const {
    store(value, row + channel + part * kLanes);
  }
};

struct SomeLanes {
  std::size_t channel;
  std::size_t count;

  ARENITE_LANE Lanes source(const float* pixel, std::size_t) const {
    return load_some(pixel + channel, count);
  }
  ARENITE_LANE Lanes values(const float* row, std::size_t) const {
    return load_some(row + channel, count);
  }
  ARENITE_LANE void keep(Lanes value, float* row, std::size_t) const {
    store_some(value, row + channel, count);
  }
};

// Several channels of the result are made from each of the source.
struct SpreadLanes {
  SomeLanes made;
  std::size_t channels[kLanes];

  ARENITE_LANE Lanes source(const float* pixel, std::size_t) const {
    float floats[kLanes];
#pragma GCC unroll 16
    for (std::size_t i = 0; i < kLanes; ++i) {
      floats[i] = pixel[channels[i]];
    }
    return load(floats);
  }
  ARENITE_LANE Lanes values(const float* row, std::size_t) const { return made.values(row, 0); }
  ARENITE_LANE void keep(Lanes value, float* row, std::size_t) const { made.keep(value, row, 0); }
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
// windows that it lies under. At an edge only the `inner` pixels exist.
template <std::size_t Columns, std::size_t Stride, bool AtEdge>
struct KnownTaps {
  const Strip& strip;
  const WholeLanes& channels;
  const PixelSpan& inner;

  template <std::size_t Pixels, std::size_t Parts>
  ARENITE_LANE void add(const float* source, const float* filter,
                        Lanes (&sums)[Pixels][Parts]) const {
    Lanes taps[Columns][Parts];
#pragma GCC unroll 16
    for (std::size_t k = 0; k < Columns; ++k) {
#pragma GCC unroll 4
      for (std::size_t part = 0; part < Parts; ++part) {
        taps[k][part] = channels.values(filter + k * strip.channels, part);
      }
    }
#pragma GCC unroll 32
    for (std::size_t read = 0; read < (Pixels - 1) * Stride + Columns; ++read) {
      if (!AtEdge || read - inner.first < inner.count) {
#pragma GCC unroll 4
        for (std::size_t part = 0; part < Parts; ++part) {
          const Lanes value = channels.source(source, part);
#pragma GCC unroll 16
          for (std::size_t p = 0; p < Pixels; ++p) {
            if (read >= p * Stride && read < p * Stride + Columns) {
              sums[p][part] = multiply_add(value, taps[read - p * Stride][part], sums[p][part]);
            }
          }
        }
      }
      source += strip.pixel_stride;
    }
  }
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace arenite
HWY_AFTER_NAMESPACE();

#endif  // once for each kind
