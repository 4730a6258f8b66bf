// Float convolutions whose filter is kept as 16-bit floats.
#pragma once

#include <pthreadpool.h>

#include <cstddef>

#include "kernels/convolution/convolve.hpp"
#include "kernels/half.hpp"

namespace arenite {

// A convolution of one group. Its filter is packed as that of a Convolution.
struct HalfFilterConvolution {
  SlidingWindow window;
  const Half* filter;
  float* panels;           // working memory: panels of the filter as 32-bit floats
  std::size_t num_panels;  // that it holds, at least one
  FloatStore store;
};

// Does what `convolve` does, to the same bits, by a few panels after another.
void convolve_half_filter(const HalfFilterConvolution& convolution,
                          const Image<const float>& source, const Image<float>& result,
                          RowRange rows, pthreadpool_t threads);

}  // namespace arenite
