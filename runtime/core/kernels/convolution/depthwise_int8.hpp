// 8-bit depthwise convolutions: any rows of a result, channel by channel.
#pragma once

#include <pthreadpool.h>

#include <cstddef>
#include <cstdint>

#include "kernels/image.hpp"
#include "kernels/requantise.hpp"
#include "kernels/sliding_window.hpp"

namespace arenite {

// The filter lies by taps, row after row of the window, and in a tap by output channels: as many of
// them side by side for each input channel as the result has times more channels.
//
// Weights are signed. Unsigned ones are given with 128 taken away, from their zero point too.
struct Int8DepthwiseConvolution {
  SlidingWindow window;
  const std::int8_t* filter;
  std::int32_t source_zero_point;
  std::int32_t filter_zero_point;
  QuantisedStore store;
};

// Writes rows of the result from the rows of the source under the windows. Results are the same to
// the bit for any grouping of rows, any number of threads and any processor.
//
// All of the source may be read until the last row is written, so a result may not lie over it.
void convolve_depthwise(const Int8DepthwiseConvolution& convolution,
                        const Image<const std::int8_t>& source, const Image<std::int8_t>& result,
                        RowRange rows, pthreadpool_t threads);
void convolve_depthwise(const Int8DepthwiseConvolution& convolution,
                        const Image<const std::uint8_t>& source, const Image<std::uint8_t>& result,
                        RowRange rows, pthreadpool_t threads);

}  // namespace arenite
