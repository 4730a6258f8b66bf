// Float convolutions whose filter is kept as 16-bit floats.
#pragma once

#include <pthreadpool.h>

#include <cstddef>

#include "kernels/convolution/convolve.hpp"
#include "kernels/half.hpp"

namespace arenite {

// Up to so many pixels, each made from one, are multiplied with the filter where it lies.
constexpr std::size_t kFewShortPixels = 4;

// A convolution of one group. Its filter, of Half or BFloat, is packed as that of a Convolution.
template <typename Short>
struct ShortFilterConvolution {
  SlidingWindow window;
  const Short* filter;
  float* panels;           // working memory: panels of the filter as 32-bit floats
  std::size_t num_panels;  // that it holds, at least one unless there are few pixels
  FloatStore store;
};

// Does what `convolve` does, to the same bits: a few panels after another, or where there are few
// pixels, each made from one, without widening the filter in memory.
template <typename Short>
void convolve_short_filter(const ShortFilterConvolution<Short>& convolution,
                           const Image<const float>& source, const Image<float>& result,
                           RowRange rows, pthreadpool_t threads);

}  // namespace arenite
