// The window of a convolution or pool, checked against its operands.
#pragma once

#include <cstdint>

#include "kernels/sliding_window.hpp"
#include "operand_checks.hpp"

namespace arenite {

// Returns the window of a filter whose rows and columns are two axes, the first of them `axis`,
// in this order.
template <typename Attributes>
SlidingWindow filter_window(const Operands& operands, const Attributes& attributes,
                            const TensorView& filter, std::size_t axis = 1) {
  const std::size_t rows = filter.shape[axis];
  const std::size_t columns = filter.shape[axis + 1];
  require(operands, rows < (1u << 24) && columns < (1u << 24), "its filter is too large");
  return {{static_cast<std::uint32_t>(rows), static_cast<std::uint32_t>(columns)},
          numbers<2>(operands, attributes.strides(), 1),
          numbers<2>(operands, attributes.dilations(), 1),
          numbers<4>(operands, attributes.padding(), 0)};
}

// Returns the window that attributes state, with rows and columns of its own.
template <typename Attributes>
SlidingWindow stated_window(const Operands& operands, const Attributes& attributes,
                            const flatbuffers::Vector<std::uint32_t>* size,
                            std::uint32_t default_size) {
  return {numbers<2>(operands, size, default_size), numbers<2>(operands, attributes.strides(), 1),
          numbers<2>(operands, attributes.dilations(), 1),
          numbers<4>(operands, attributes.padding(), 0)};
}

// Requires input and output images N, H, W, C, and one element of output for each window.
inline void require_images(const Operands& operands, const SlidingWindow& window) {
  const auto& source = *operands.inputs[0];
  const auto& result = *operands.outputs[0];
  require(operands, source.rank() == 4 && result.rank() == 4,
          "its input and output must have rank 4");
  require(operands, source.shape[0] == result.shape[0], "the batches differ");
  require(operands, source.size > 0 && result.size > 0, "an image is empty");
  const std::uint64_t margins[2] = {std::uint64_t{window.padding[0]} + window.padding[2],
                                    std::uint64_t{window.padding[3]} + window.padding[1]};
  for (std::size_t axis = 0; axis < 2; ++axis) {
    require(operands,
            window.kernel[axis] > 0 && window.strides[axis] > 0 && window.dilations[axis] > 0,
            "a window, stride or dilation is 0");
    const std::uint64_t extent =
        std::uint64_t{window.dilations[axis]} * (window.kernel[axis] - 1) + 1;
    const std::uint64_t padded = source.shape[axis + 1] + margins[axis];
    require(
        operands,
        padded >= extent && (padded - extent) / window.strides[axis] + 1 == result.shape[axis + 1],
        "the windows do not make the rows and columns of the output");
  }
}

}  // namespace arenite
