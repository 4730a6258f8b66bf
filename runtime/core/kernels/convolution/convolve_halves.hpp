// Convolutions of 16-bit floats in their own arithmetic: that of ARMv8.2.
#pragma once

#include <pthreadpool.h>

#include <cstddef>

#include "kernels/convolution/convolve.hpp"
#include "kernels/half.hpp"
#include "kernels/processor.hpp"

namespace arenite {

// The last operations on a sum, as a FloatStore has them.
struct HalfStore {
  const Half* bias;                 // by output channel, filled up with zeros to whole panels
  const Image<const Half>* addend;  // of the shape of the result; null: none
  float min;
  float max;
};

// A convolution of one group. Its filter is packed as that of a Convolution.
struct HalfConvolution {
  SlidingWindow window;
  const Half* filter;
  HalfStore store;
};

// A depthwise convolution with a channel of the result for each of the source. Its filter lies as
// that of a DepthwiseConvolution.
struct HalfDepthwise {
  SlidingWindow window;
  const Half* filter;
  HalfStore store;
};

#if defined(ARENITE_ARM64)

// Whether the convolution of such an image keeps within the kernel's copies of windows.
bool convolves_halves(const HalfConvolution& convolution, std::size_t channels);

// Writes rows of the result. Sums are of 16 bits for up to 64 products, and of 32 bits for all of
// these. Results are the same to the bit for any grouping of rows and any number of threads. The
// addend may lie where the result does.
//
// For images of Half and float, and of float and Half; an image of floats has no addend.
template <typename Source, typename Result>
void convolve_halves(const HalfConvolution& convolution, const Image<const Source>& source,
                     const Image<Result>& result, RowRange rows, pthreadpool_t threads);

constexpr std::size_t kMostDepthwiseRows = 16;  // of a window

// The same. Sums are of 16 bits. There are at least 8 channels, a multiple of 8 with an addend.
void convolve_depthwise_halves(const HalfDepthwise& convolution, const Image<const Half>& source,
                               const Image<Half>& result, RowRange rows, pthreadpool_t threads);

#endif

}  // namespace arenite
