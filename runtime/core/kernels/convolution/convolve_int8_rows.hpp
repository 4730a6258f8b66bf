// Convolutions of 8-bit integers whose sums stay in registers until they are bytes again.
#pragma once

#include <pthreadpool.h>

#include <cstddef>
#include <cstdint>

#include "kernels/convolution/convolve_int8.hpp"

namespace arenite {

// A convolution and its images, whichever sign their bytes have.
struct Int8ConvolutionRows {
  const Int8Convolution& convolution;
  const Image<const std::uint8_t>& source;
  const Image<std::uint8_t>& result;
  RowRange rows;
  std::uint8_t flip;  // of the source's signs, to make its bytes unsigned
  std::int32_t zero;  // the source's zero point as flipped
};

// Makes the rows and returns true, or returns false where the processor or the convolution is not
// one for it: those are left to tiles of sums (int8_tile.hpp).
bool convolve_rows(const Int8ConvolutionRows& given, pthreadpool_t threads);

}  // namespace arenite
