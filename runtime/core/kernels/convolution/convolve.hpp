// Float convolutions: any rows of a result from rows of an image and packed weights.
#pragma once

#include <pthreadpool.h>

#include <cstddef>

#include "kernels/image.hpp"
#include "kernels/sliding_window.hpp"

namespace arenite {

// Output channels that lie side by side in a packed filter.
constexpr std::size_t kPanel = 16;

// The last operations on a sum: bias and addend are added, then it is clamped.
struct FloatStore {
  const float* bias;                 // by output channel; null: none
  const Image<const float>* addend;  // of the shape of the result; null: none
  float min;
  float max;
};

// A filter is packed by groups; in a group by panels of output channels, the last one filled up
// with zeros; in a panel by taps, row after row of the window; in a tap by input channels; and
// there by the panel's output channels. It is the same for every processor.
struct Convolution {
  SlidingWindow window;
  std::size_t groups;
  const float* filter;
  FloatStore store;
};

// Floats of a packed filter; `depth` is the taps of the window times the input channels of a group.
std::size_t packed_filter_size(std::size_t groups, std::size_t outputs, std::size_t depth);

// Writes rows of the result from the rows of the source under the windows. Results are the same to
// the bit for any grouping of rows and any number of threads.
//
// All of the source may be read until the last row is written; a result is written in several
// passes, so neither may lie over the other. The addend may lie where the result does.
void convolve(const Convolution& convolution, const Image<const float>& source,
              const Image<float>& result, RowRange rows, pthreadpool_t threads);

}  // namespace arenite
