// 8-bit convolutions: any rows of a result from rows of an image and packed weights.
#pragma once

#include <pthreadpool.h>

#include <cstddef>
#include <cstdint>

#include "kernels/image.hpp"
#include "kernels/requantise.hpp"
#include "kernels/sliding_window.hpp"

namespace arenite {

// Output channels that lie side by side in a packed filter, and elements of depth that do.
constexpr std::size_t kInt8Panel = 16;
constexpr std::size_t kInt8Quad = 4;

// A filter is packed by groups; in a group by panels of output channels, the last one filled up
// with zeros. A panel is the sum of the weights of each of its channels, as 32 bits of the
// processor's order, and then the weights by quads of depth; in a quad by the panel's channels,
// and there the quad's four elements. Depth is the taps of the window, row after row, times the
// input channels of a group, those of one tap side by side; the last quad is filled up with zeros.
//
// The order is the same for every processor and suits dot products of four bytes. The sums give the
// constant part of a result: zero points, and the sign that such products lack.
//
// Weights are signed. Unsigned ones are packed with 128 taken away, from their zero point too.
struct Int8Convolution {
  SlidingWindow window;
  std::size_t groups;
  const std::int8_t* filter;
  std::int32_t source_zero_point;
  std::int32_t filter_zero_point;  // as packed; other than 0 costs a sum of each tile's source
  QuantisedStore store;
};

// A convolution whose sums become floats, or stay integers, and whose zero points may be made in
// the run; or one of which the sums are added to others before they become bytes.
struct Int8Sums {
  SlidingWindow window;
  std::size_t groups;
  const std::int8_t* filter;
  std::int32_t source_zero_point;
  const std::int32_t* filter_zero_points;  // by output channel, as packed; null: 0

  // Of floats: source scale * filter scale * sum + bias, clamped.
  float source_scale;
  const float* scales;  // by output channel
  const float* bias;    // by output channel; null: none
  float min;
  float max;

  // Of integers: what is added to their sums, an image of the shape of the result; null: nothing.
  const Image<const std::int32_t>* addend = nullptr;
  QuantisedStore bytes = {};  // of bytes, with the scales in place of those above
};

// Bytes of a packed filter; `outputs` are those of a group, `depth` the taps of the window times
// the input channels of a group. At any address that a 32-bit integer may have; 64 is fastest.
std::size_t packed_int8_filter_size(std::size_t groups, std::size_t outputs, std::size_t depth);

// Writes rows of the result from the rows of the source under the windows. Results are the same to
// the bit for any grouping of rows, any number of threads and any processor.
// Sums are of 32 bits, and wrap.
//
// All of the source may be read until the last row is written, so a result may not lie over it.
void convolve(const Int8Convolution& convolution, const Image<const std::int8_t>& source,
              const Image<std::int8_t>& result, RowRange rows, pthreadpool_t threads);
void convolve(const Int8Convolution& convolution, const Image<const std::uint8_t>& source,
              const Image<std::uint8_t>& result, RowRange rows, pthreadpool_t threads);

// The same for results that are sums, of T: std::int8_t or std::uint8_t, and Sum: float,
// std::int32_t, or T. Floats are not the same to the bit on every processor.
template <typename T, typename Sum>
void convolve(const Int8Sums& convolution, const Image<const T>& source, const Image<Sum>& result,
              RowRange rows, pthreadpool_t threads);

}  // namespace arenite
