// Float depthwise convolutions: any rows of a result, channel by channel.
#pragma once

#include <pthreadpool.h>

#include "kernels/convolution/convolve.hpp"

namespace arenite {

// The filter lies by taps, row after row of the window, and in a tap by output channels: as many of
// them side by side for each input channel as the result has times more channels.
struct DepthwiseConvolution {
  SlidingWindow window;
  const float* filter;
  FloatStore store;
};

// Writes rows of the result from the rows of the source under the windows. Results are the same to
// the bit for any grouping of rows and any number of threads. Uses no scratch.
//
// A result is written once, after all of its operands were read.
void convolve_depthwise(const DepthwiseConvolution& convolution, const Image<const float>& source,
                        const Image<float>& result, RowRange rows, pthreadpool_t threads);

}  // namespace arenite
