// Filters of transposed convolutions, phase by phase, packed as those of convolutions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include "kernels/convolution/convolve.hpp"
#include "kernels/convolution/convolve_int8.hpp"
#include "kernels/sliding_window.hpp"
#include "step_memory.hpp"
#include "tensor_view.hpp"

namespace arenite {

// The indices of a result along an axis that are alike: each `stride`-th from `first` on. They read
// the taps first_tap, first_tap + tap_step, ... of the filter, the last one from the lowest index
// of the source.
struct Phase {
  std::size_t first;
  std::size_t stride;
  std::size_t count;
  std::size_t first_tap;
  std::size_t tap_step;
  std::size_t num_taps;
  std::uint32_t dilation;  // of the taps in the source
  std::uint32_t padding;   // before the source
  std::size_t skipped;     // of the source, where nothing of it is padded
};

inline StepVector<Phase> phases_of(const SlidingWindow& window, std::size_t axis,
                                   std::size_t length) {
  const std::size_t stride = window.strides[axis];
  const std::size_t dilation = window.dilations[axis];
  const std::size_t before = axis == 0 ? window.padding[0] : window.padding[3];
  const std::size_t common = std::gcd(stride, dilation);
  StepVector<Phase> found;
  for (std::size_t first = 0; first < std::min(stride, length); ++first) {
    Phase phase{first, stride, (length - first + stride - 1) / stride, 0, stride / common, 0, 1,
                0,     0};
    // Whether tap k reaches index `first`.
    const auto reaches = [&](std::size_t k) {
      const auto distance =
          static_cast<std::int64_t>(first + before) - static_cast<std::int64_t>(k * dilation);
      return distance % static_cast<std::int64_t>(stride) == 0;
    };
    const std::size_t most = std::min<std::size_t>(window.kernel[axis], phase.tap_step);
    while (phase.first_tap < most && !reaches(phase.first_tap)) { ++phase.first_tap; }
    if (phase.first_tap < most) {
      phase.num_taps = (window.kernel[axis] - phase.first_tap - 1) / phase.tap_step + 1;
      phase.dilation = static_cast<std::uint32_t>(dilation / common);
      const std::int64_t base = (static_cast<std::int64_t>(first + before) -
                                 static_cast<std::int64_t>(phase.first_tap * dilation)) /
                                static_cast<std::int64_t>(stride);
      const std::int64_t padding =
          static_cast<std::int64_t>((phase.num_taps - 1) * phase.dilation) - base;
      phase.padding = static_cast<std::uint32_t>(std::max<std::int64_t>(padding, 0));
      phase.skipped = static_cast<std::size_t>(std::max<std::int64_t>(-padding, 0));
    }
    found.push_back(phase);
  }
  return found;
}

// Whether the phases of all indices read the same of the source, and are as many.
inline bool are_alike(const StepVector<Phase>& phases) {
  const Phase& first = phases.front();
  return std::all_of(phases.begin(), phases.end(), [&](const Phase& phase) {
    return phases.size() == phase.stride && phase.count == first.count &&
           phase.num_taps == first.num_taps && phase.num_taps != 0 &&
           phase.padding == first.padding && phase.skipped == first.skipped;
  });
}

// A filter as the file has it: outputs, rows, columns, inputs of a group. It is packed for a phase
// of rows and some phases of columns, whose outputs then follow one another.
struct TransposedFilter {
  const TensorView& view;
  std::size_t groups;

  std::size_t outputs() const { return view.shape[0] / groups; }
  std::size_t inputs() const { return view.shape[3]; }

  // Calls use(output, k, element) on the taps of two phases in the order in which windows read
  // them; `output` counts those of a group, k the elements of a product.
  template <typename T, typename Use>
  void each(std::size_t group, const Phase& rows, const Phase& columns, const Use& use) const {
    const T* data = view.as<T>();
    for (std::size_t output = 0; output < outputs(); ++output) {
      std::size_t k = 0;
      for (std::size_t i = rows.num_taps; i-- > 0;) {
        const std::size_t y = rows.first_tap + i * rows.tap_step;
        for (std::size_t j = columns.num_taps; j-- > 0;) {
          const std::size_t x = columns.first_tap + j * columns.tap_step;
          const std::size_t tap =
              ((group * outputs() + output) * view.shape[1] + y) * view.shape[2] + x;
          for (std::size_t c = 0; c < inputs(); ++c) { use(output, k++, data[tap * inputs() + c]); }
        }
      }
    }
  }
};

struct Columns {
  const Phase* phases;
  std::size_t count;
};

inline std::size_t depth_of(const TransposedFilter& filter, const Phase& rows,
                            const Columns& columns) {
  // Without any taps, one of zeros.
  return std::max<std::size_t>(rows.num_taps * columns.phases[0].num_taps, 1) * filter.inputs();
}

inline std::vector<float> pack(const TransposedFilter& filter, const Phase& rows,
                               const Columns& columns, float) {
  const std::size_t depth = depth_of(filter, rows, columns);
  const std::size_t outputs = filter.outputs() * columns.count;
  std::vector<float> packed(packed_filter_size(filter.groups, outputs * filter.groups, depth));
  const std::size_t group_size = packed.size() / filter.groups;
  for (std::size_t group = 0; group < filter.groups; ++group) {
    float* to = packed.data() + group * group_size;
    for (std::size_t i = 0; i < columns.count; ++i) {
      const std::size_t first = i * filter.outputs();
      filter.each<float>(group, rows, columns.phases[i],
                         [&](std::size_t output, std::size_t k, float element) {
                           output += first;
                           to[(output / kPanel * depth + k) * kPanel + output % kPanel] = element;
                         });
    }
  }
  return packed;
}

template <typename T>
std::vector<std::int8_t> pack(const TransposedFilter& filter, const Phase& rows,
                              const Columns& columns, T) {
  const std::size_t depth = depth_of(filter, rows, columns);
  const std::size_t outputs = filter.outputs() * columns.count;
  std::vector<std::int8_t> packed(packed_int8_filter_size(filter.groups, outputs, depth));
  const std::size_t group_size = packed.size() / filter.groups;
  const std::size_t quads = (depth + kInt8Quad - 1) / kInt8Quad;
  const std::size_t panel_size = (quads + 1) * kInt8Panel * kInt8Quad;
  const bool is_unsigned = filter.view.type == program::Type::uint8;
  for (std::size_t group = 0; group < filter.groups; ++group) {
    for (std::size_t i = 0; i < columns.count; ++i) {
      const std::size_t first = i * filter.outputs();
      const auto add = [&](std::size_t output, std::size_t k, std::uint8_t bits) {
        output += first;
        const auto weight = static_cast<std::int8_t>(is_unsigned ? bits ^ 0x80 : bits);
        std::int8_t* panel = packed.data() + group * group_size + output / kInt8Panel * panel_size;
        const std::size_t lane = output % kInt8Panel;
        std::int32_t sum;
        std::memcpy(&sum, panel + lane * sizeof sum, sizeof sum);
        sum += weight;
        std::memcpy(panel + lane * sizeof sum, &sum, sizeof sum);
        panel[((1 + k / kInt8Quad) * kInt8Panel + lane) * kInt8Quad + k % kInt8Quad] = weight;
      };
      filter.each<std::uint8_t>(group, rows, columns.phases[i], add);
    }
  }
  return packed;
}

}  // namespace arenite
