// Products of one row with a filter of 16-bit floats, which is read where it lies.
#pragma once

#include <cstddef>

#include "kernels/half.hpp"

namespace arenite {

// A row, and panels of 16 outputs of a filter packed as that of a Convolution.
template <typename Short>
struct ShortRow {
  const float* row;
  std::size_t depth;
  const Short* filter;  // the first panel
  const float* bias;    // of its outputs; null: zeros
  const float* addend;  // the same; null: none
  float* result;
  std::size_t channels;  // from the first panel on
  float min;
  float max;
};

// Writes all channels. Each sum starts from bias and addend and takes one product after another, as
// in a tile of `convolve`, and is the same to the bit.
void multiply_short_row(const ShortRow<Half>& product);
void multiply_short_row(const ShortRow<BFloat>& product);

}  // namespace arenite
