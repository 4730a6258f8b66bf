#include "kernels/convolution/pack_filter.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/convolution/convolve.hpp"
#include "kernels/parallel.hpp"
#include "kernels/turned_square.hpp"

namespace arenite {

namespace {

// Weights of four outputs from `first` on, of which four lie side by side in each: to[i] takes the
// i-th of all outputs.
void turn_square(const float* first, std::size_t output_stride, float* const* to) {
  const auto stride = static_cast<std::ptrdiff_t>(output_stride * sizeof(float));
  const Square turned = turned_square(first, stride);
  for (std::size_t i = 0; i < kSquare; ++i) {
    std::memcpy(to[i], &turned.rows[i], sizeof turned.rows[i]);
  }
}

// A whole panel of a filter whose weights lie by outputs, inputs and taps without gaps. A few
// outputs at a time: many of them lie as far apart as lines that share a place in the cache.
void turn_panel(const float* from, const FilterPlaces& places, float* packed) {
  constexpr std::size_t kBlock = 16;
  const std::size_t taps = places.taps();
  const std::size_t count = taps * places.inputs;
  for (std::size_t first = 0; first < count; first += kBlock) {
    const std::size_t block = std::min(kBlock, count - first);
    float* to[kBlock];
    for (std::size_t i = 0; i < block; ++i) {
      const std::size_t input = (first + i) / taps;
      const std::size_t tap = (first + i) % taps;
      to[i] = packed + (tap * places.inputs + input) * kPanel;
    }
    for (std::size_t output = 0; output < kPanel; output += kSquare) {
      const float* const weights = from + output * places.output_stride + first;
      std::size_t i = 0;
      for (; i + kSquare <= block; i += kSquare) {
        turn_square(weights + i, places.output_stride, to + i);
      }
      for (; i < block; ++i) {
        for (std::size_t each = 0; each < kSquare; ++each) {
          to[i][each] = weights[each * places.output_stride + i];
        }
      }
      for (i = 0; i < block; ++i) { to[i] += kSquare; }
    }
  }
}

// One panel of a filter: `width` outputs from `from` on. Taps innermost: of most filters they lie
// side by side.
void pack_panel(const float* from, std::size_t width, const FilterPlaces& places, float* packed) {
  const bool is_dense = places.column_stride == 1 &&
                        places.row_stride == static_cast<std::ptrdiff_t>(places.columns) &&
                        places.input_stride == places.taps();
  if (width == kPanel && is_dense) {
    turn_panel(from, places, packed);
    return;
  }
  const std::size_t tap_size = places.inputs * kPanel;
  for (std::size_t input = 0; input < places.inputs; ++input) {
    float* to = packed + input * kPanel;
    for (std::size_t row = 0; row < places.rows; ++row) {
      const float* weight = from + static_cast<std::ptrdiff_t>(input * places.input_stride) +
                            static_cast<std::ptrdiff_t>(row) * places.row_stride;
      for (std::size_t column = 0; column < places.columns; ++column) {
        if (width == kPanel && places.output_stride == 1) {
          std::copy_n(weight, kPanel, to);
        } else {
          for (std::size_t output = 0; output < kPanel; ++output) {
            to[output] = output < width ? weight[output * places.output_stride] : 0.0f;
          }
        }
        weight += places.column_stride;
        to += tap_size;
      }
    }
  }
}

}  // namespace

void pack_filter(const float* first, const FilterPlaces& places, float* packed,
                 pthreadpool_t threads) {
  const std::size_t panels = divide_up(places.outputs, kPanel);
  const std::size_t panel_size = places.taps() * places.inputs * kPanel;
  parallel(threads, panels, panel_size * sizeof(float), [&](std::size_t panel, std::size_t count) {
    for (const std::size_t end = panel + count; panel < end; ++panel) {
      const std::size_t output = panel * kPanel;
      pack_panel(first + output * places.output_stride, std::min(kPanel, places.outputs - output),
                 places, packed + panel * panel_size);
    }
  });
}

void pack_depthwise_filter(const float* first, const FilterPlaces& places, float* packed,
                           pthreadpool_t threads) {
  const std::size_t cost = places.outputs * sizeof(float);
  parallel(threads, places.taps(), cost, [&](std::size_t tap, std::size_t count) {
    for (const std::size_t end = tap + count; tap < end; ++tap) {
      const auto row = static_cast<std::ptrdiff_t>(tap / places.columns);
      const auto column = static_cast<std::ptrdiff_t>(tap % places.columns);
      const float* weight = first + row * places.row_stride + column * places.column_stride;
      float* const to = packed + tap * places.outputs;
      for (std::size_t output = 0; output < places.outputs; ++output) {
        to[output] = weight[output * places.output_stride];
      }
    }
  });
}

}  // namespace arenite
