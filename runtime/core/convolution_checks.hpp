// Checks of convolutions and of products with weights.
//
// Filters in floating point are packed (kernels/convolution/convolve.hpp). Those of integers are,
// too (kernels/convolution/convolve_int8.hpp), or lie as they are: outputs, rows, columns, inputs.
#pragma once

#include <cstddef>

#include "kernels/convolution/convolve.hpp"
#include "operand_checks.hpp"
#include "sliding_window.hpp"

namespace arenite {

inline bool is_packed(const TensorView& filter) { return filter.type == program::Type::float32; }

// Whether a packed filter has exactly the panels of so many outputs.
inline bool has_panels(const TensorView& filter, std::size_t groups, std::size_t outputs) {
  const std::size_t panels = (outputs / groups + kPanel - 1) / kPanel;
  return filter.shape.back() == kPanel && filter.shape[0] == groups * panels;
}

// Returns the window of a Conv2D. Refuses images, filters and groups that do not fit.
template <typename Attributes>
SlidingWindow conv_window(const Operands& operands, const Attributes& attributes) {
  const auto& source = *operands.inputs[0];
  const auto& filter = *operands.inputs[1];
  const auto& result = *operands.outputs[0];
  const bool packed = is_packed(filter);
  require(operands, filter.rank() == (packed ? 5 : 4),
          packed ? "its filter must have rank 5, in panels of 16 outputs"
                 : "its filter must have rank 4");
  const SlidingWindow window = filter_window(operands, attributes, filter);
  require_images(operands, window);
  const std::size_t groups = attributes.groups();
  const std::size_t outputs = result.shape[3];
  require(operands,
          groups > 0 && outputs % groups == 0 && filter.shape[3] * groups == source.shape[3] &&
              (packed ? has_panels(filter, groups, outputs) : filter.shape[0] == outputs),
          "groups and channels do not fit");
  return window;
}

// Returns the window of a DepthwiseConv2D, in the same way.
template <typename Attributes>
SlidingWindow depthwise_window(const Operands& operands, const Attributes& attributes) {
  const auto& filter = *operands.inputs[1];
  const auto& result = *operands.outputs[0];
  require(operands, filter.rank() == 4, "its filter must have rank 4");
  const SlidingWindow window = filter_window(operands, attributes, filter);
  require_images(operands, window);
  require(operands,
          filter.shape[0] == 1 && filter.shape[3] % operands.inputs[0]->shape[3] == 0 &&
              result.shape[3] == filter.shape[3],
          "its filter and channels do not fit");
  return window;
}

// A product of rows and a matrix. Refuses rows and weights that do not fit.
struct MatrixProduct {
  std::size_t rows;
  std::size_t num_inputs;
  std::size_t num_outputs;

  explicit MatrixProduct(const Operands& operands) {
    const auto& source = *operands.inputs[0];
    const auto& weights = *operands.inputs[1];
    const auto& result = *operands.outputs[0];
    const bool packed = is_packed(weights);
    require(operands, source.rank() > 0 && weights.rank() == (packed ? 3 : 2) && result.rank() > 0,
            packed ? "its inputs must be rows and a matrix in panels of 16 outputs"
                   : "its inputs must be rows and a matrix");
    num_inputs = weights.shape[1];
    num_outputs = result.shape.back();
    require(operands,
            num_inputs > 0 && num_outputs > 0 && source.shape.back() == num_inputs &&
                (packed ? has_panels(weights, 1, num_outputs) : weights.shape[0] == num_outputs) &&
                source.num_elements() / num_inputs == result.num_elements() / num_outputs,
            "rows and weights do not fit");
    rows = source.num_elements() / num_inputs;
  }
};

}  // namespace arenite
