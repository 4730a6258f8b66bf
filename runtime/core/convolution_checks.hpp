// Checks of convolutions and of products with weights.
//
// Filters in floating point are packed (kernels/convolution/convolve.hpp). Those of integers are,
// too (kernels/convolution/convolve_int8.hpp), or lie as they are: outputs, rows, columns, inputs.
#pragma once

#include <cstddef>

#include "kernels/convolution/convolve.hpp"
#include "kernels/convolution/short_filter.hpp"
#include "operand_checks.hpp"
#include "sliding_window.hpp"
#include "validation.hpp"

namespace arenite {

inline bool is_packed(const TensorView& filter) {
  return filter.type == program::Type::float32 || is_short_float(filter.type);
}

// Whether the filter of a convolution or product is kept as 16-bit floats, which the kernel reads.
inline bool has_short_filter(const Operands& operands) {
  const auto kind = operands.step.kernel_type();
  const bool is_convolution =
      kind == program::Operator::Conv2D || kind == program::Operator::FullyConnected;
  const auto* filter = optional_input(operands, 1);
  return is_convolution && filter != nullptr && is_short_float(filter->type);
}

// Whether it needs no working memory: a product of few rows.
inline bool reads_short_filter(const Operands& operands) {
  const auto& result = *operands.outputs[0];
  return operands.step.kernel_type() == program::Operator::FullyConnected && result.rank() > 0 &&
         result.num_elements() <= kFewShortPixels * result.shape.back();
}

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

// Returns the window of a TransposedConv2D, which must give the size of the result. Refuses groups
// that do not fit.
inline SlidingWindow transposed_window(const Operands& operands,
                                       const program::TransposedConv2D& attributes) {
  const auto& source = *operands.inputs[0];
  const auto& filter = *operands.inputs[1];
  const auto& result = *operands.outputs[0];
  require(operands, filter.rank() == 4, "its filter must have rank 4");
  // Its taps are the last axes, or those before the last.
  const std::size_t axis_of_rows = attributes.by_inputs() ? 2 : 1;
  const SlidingWindow window = filter_window(operands, attributes, filter, axis_of_rows);
  const auto adjustment = numbers<2>(operands, attributes.adjustment(), 0);
  require(operands, source.rank() == 4 && result.rank() == 4,
          "its input and output must have rank 4");
  require(operands, source.shape[0] == result.shape[0] && source.size > 0 && result.size > 0,
          "the batches differ, or an image is empty");
  const std::uint64_t margins[2] = {std::uint64_t{window.padding[0]} + window.padding[2],
                                    std::uint64_t{window.padding[3]} + window.padding[1]};
  for (std::size_t axis = 0; axis < 2; ++axis) {
    require(operands,
            window.kernel[axis] > 0 && window.strides[axis] > 0 && window.dilations[axis] > 0 &&
                adjustment[axis] < window.strides[axis],
            "a window, stride or adjustment does not fit");
    const std::uint64_t full = std::uint64_t{window.strides[axis]} * (source.shape[axis + 1] - 1) +
                               std::uint64_t{window.dilations[axis]} * (window.kernel[axis] - 1) +
                               1 + adjustment[axis];
    require(operands, full >= margins[axis] && full - margins[axis] == result.shape[axis + 1],
            "the windows do not make the rows and columns of the output");
  }
  const std::size_t groups = attributes.groups();
  const bool by_inputs = attributes.by_inputs();
  require(
      operands,
      groups > 0 && filter.size > 0 &&
          (by_inputs
               ? filter.shape[0] % groups == 0 && filter.shape[0] == source.shape[3] &&
                     result.shape[3] / groups == filter.shape[1] && result.shape[3] % groups == 0
               : filter.shape[0] % groups == 0 && filter.shape[3] * groups == source.shape[3] &&
                     result.shape[3] == filter.shape[0]),
      "groups and channels do not fit");
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
