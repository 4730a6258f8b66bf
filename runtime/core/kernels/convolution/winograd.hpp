// Convolutions with windows of 3 x 3 in fewer multiplications, after Winograd: any rows of a
// result.
//
// Source: A. Lavin, S. Gray, Fast Algorithms for Convolutional Neural Networks, 2015. A tile of the
// result, 2 x 2, 4 x 4 or 6 x 6, is made from the tile of the source under it, which is two larger:
// at each point of that (16, 36 or 64) it takes one product, of matrices that were transformed
// before. A 6 x 6 tile takes 64 multiplications where 324 are in its windows, a 4 x 4 tile 36 where
// there are 144, a 2 x 2 tile 16 where there are 36.
#pragma once

#include <pthreadpool.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/convolution/convolve.hpp"
#include "kernels/processor.hpp"

namespace arenite {

// The largest tile of this kind of processor: with more registers larger ones take less time.
#ifdef ARENITE_ARM64
constexpr std::size_t kLargestTile = 6;
#else
constexpr std::size_t kLargestTile = 4;
#endif

// The fewest pixels of a result that are worth the transforms of its filter, if nothing was tuned.
#ifdef ARENITE_X86
constexpr std::size_t kFewestPixels = 100;
#else
constexpr std::size_t kFewestPixels = 1;
#endif

// With strides and dilations of 1, all input channels for each output.
//
// The filter is that of `convolve`, of one group. Some of its panels at a time are transformed in
// scratch, a window of points each, tile + 2 to a side: so it takes no memory of its own, and where
// the image is small its weights are read once and not at every point. For g, a filter 3 x 3, that
// is G g transposed(G), where G is for tiles of 2 and 4:
//
//      1     0    0        1     0     0
//     1/2   1/2  1/2       1    1/r   1/2        r: the square root of 2
//     1/2  -1/2  1/2       1   -1/r   1/2
//      0     0    1       1/2   1/r    1
//                         1/2  -1/r    1
//                          0     0     1
struct WinogradConvolution {
  std::size_t tile;  // rows and columns that are made together: 2, 4 ... kLargestTile
  std::array<std::uint32_t, 4> padding;  // top, right, bottom, left
  const float* filter;
  FloatStore store;
  void* scratch;              // aligned to 64 bytes
  std::size_t scratch_bytes;  // at least as winograd_scratch says; more take less time
  std::size_t num_threads;    // for which there is scratch; more are left idle
};

// Bytes that are needed at least to compute these rows of a result with so many columns, from so
// many input channels, with so many threads. For bands it is the most that any of them needs.
std::size_t winograd_scratch(std::size_t tile, std::size_t inputs, std::size_t columns,
                             RowRange rows, std::size_t num_threads);

// The rows of the source that rows of the result are made from: tiles start at row 0 of the result,
// and all rows under a tile are read for any row in it.
RowRange winograd_source_rows(const WinogradConvolution& convolution,
                              const Image<const float>& source, RowRange rows);

// Writes rows of the result. A result is the same to the bit whichever rows are asked for together,
// on any number of threads; it differs from that of `convolve` by rounding, more where tiles are
// larger.
//
// All of the source may be read until the last row is written, so the result may not lie over it.
// The addend may lie where the result does.
void convolve_winograd(const WinogradConvolution& convolution, const Image<const float>& source,
                       const Image<float>& result, RowRange rows, pthreadpool_t threads);

}  // namespace arenite
