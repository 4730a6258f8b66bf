#include "kernels/convolution/pack_filter.hpp"

#include <algorithm>

#include "kernels/convolution/convolve.hpp"
#include "kernels/parallel.hpp"

namespace arenite {

namespace {

// One panel of a filter: `width` outputs from `from` on. Taps innermost: of most filters they lie
// side by side.
void pack_panel(const float* from, std::size_t width, const FilterPlaces& places, float* packed) {
  const std::size_t tap_size = places.inputs * kPanel;
  for (std::size_t input = 0; input < places.inputs; ++input) {
    float* to = packed + input * kPanel;
    for (std::size_t row = 0; row < places.rows; ++row) {
      const float* weight = from + static_cast<std::ptrdiff_t>(input * places.input_stride) +
                            static_cast<std::ptrdiff_t>(row) * places.row_stride;
      for (std::size_t column = 0; column < places.columns; ++column) {
        if (width == kPanel) {
          for (std::size_t output = 0; output < kPanel; ++output) {
            to[output] = weight[output * places.output_stride];
          }
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
  const std::size_t panels = (places.outputs + kPanel - 1) / kPanel;
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
