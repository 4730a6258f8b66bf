// Rows of depthwise convolutions of 8-bit integers, by the processor's means.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/convolution/depthwise_int8.hpp"

namespace arenite {

// What to make, whichever sign the bytes have.
struct Int8DepthwiseRows {
  const Int8DepthwiseConvolution& convolution;
  const Image<const std::uint8_t>& source;
  const Image<std::uint8_t>& result;
  RowRange rows;
  std::size_t channel;       // of the source, the first of those wanted
  std::size_t num_channels;  // of the source
  std::uint8_t flip;         // of the bytes' signs, to make them unsigned
  std::int32_t zero;         // the source's zero point as flipped

  // Where a window begins.
  std::int64_t place(std::size_t index, std::size_t axis) const {
    const auto& window = convolution.window;
    const std::int64_t before = axis == 0 ? window.padding[0] : window.padding[3];
    return static_cast<std::int64_t>(index) * window.strides[axis] - before;
  }

  // Row i of the windows of a row of the result; null outside.
  const std::uint8_t* source_row(std::size_t row, std::size_t i) const {
    const std::int64_t y =
        place(row, 0) + static_cast<std::int64_t>(i) * convolution.window.dilations[0];
    const bool is_inside = y >= 0 && y < static_cast<std::int64_t>(source.rows);
    return is_inside ? source.row(static_cast<std::size_t>(y)) : nullptr;
  }

  // Some of the channels.
  Int8DepthwiseRows part(std::size_t first, std::size_t count) const {
    return {convolution, source, result, rows, channel + first, count, flip, zero};
  }

  std::size_t multiplier() const { return result.channels / source.channels; }
};

struct Int8DepthwiseKernel {
  std::size_t channels;  // that are made at once
  void (*make)(const Int8DepthwiseRows& rows);
};

// The one for any processor and convolution, and one for some: null where there is none.
Int8DepthwiseKernel int8_depthwise_for_any();
const Int8DepthwiseKernel* int8_depthwise_for_vnni(const Int8DepthwiseRows& rows);
const Int8DepthwiseKernel* int8_depthwise_for_avx2(const Int8DepthwiseRows& rows);

}  // namespace arenite
