// Convolutions in fewer multiplications, after Winograd: any rows of a result.
//
// Source: A. Lavin, S. Gray, Fast Algorithms for Convolutional Neural Networks, 2015. A tile of the
// result is made from the tile of the source under it: in each direction that the filter has
// several taps, so many results and taps less one make so many points, 4, 6 or 8. Each point takes
// one product, of matrices that were transformed before. With 3 x 3 taps a tile of 6 x 6 results
// takes 64 multiplications where 324 are in its windows, one of 4 x 4 takes 36 where there are 144,
// one of 2 x 2 takes 16 where there are 36. Two results of a filter of 1 x 7 take 8 where there are
// 14.
#pragma once

#include <pthreadpool.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/convolution/convolve.hpp"
#include "kernels/processor.hpp"

namespace arenite {

// The most points of this kind of processor: with more registers more of them take less time.
#ifdef ARENITE_ARM64
constexpr std::size_t kMostPoints = 8;
#else
constexpr std::size_t kMostPoints = 6;
#endif

// Results that are made together.
struct WinogradTile {
  std::array<std::uint32_t, 2> kernel;  // rows and columns of the filter
  std::size_t results;                  // in each direction with several taps

  // A filter of 3 x 3 has tiles of 2, 4 or 6 results. One of 5 x 5 and one row or column of 3, 5 or
  // 7 taps have those of eight points.
  bool is_valid() const {
    if (!has_valid_kernel()) { return false; }
    const bool is_three = kernel[0] == 3 && kernel[1] == 3;
    return points() == 8 || (is_three && (results == 2 || results == 4));
  }
  bool has_valid_kernel() const {
    const bool is_square = kernel[0] == kernel[1] && (taps() == 3 || taps() == 5);
    return is_square || (is_line() && (taps() == 3 || taps() == 5 || taps() == 7));
  }
  // With no more points than this kind of processor has: not valid if the filter needs more.
  WinogradTile here() const {
    return {kernel, std::min(points(), kMostPoints) - std::min(taps() - 1, kMostPoints)};
  }

  bool is_line() const { return kernel[0] == 1 || kernel[1] == 1; }
  std::size_t taps() const { return std::max(kernel[0], kernel[1]); }
  std::size_t points() const { return results + taps() - 1; }
  std::size_t rows() const { return kernel[0] == 1 ? 1 : results; }
  std::size_t columns() const { return kernel[1] == 1 ? 1 : results; }
  std::size_t num_points() const { return (rows() + kernel[0] - 1) * (columns() + kernel[1] - 1); }
};

// The fewest pixels of a result that are worth the transforms of its filter, if nothing was tuned.
#ifdef ARENITE_X86
constexpr std::size_t kFewestPixels = 100;
#else
constexpr std::size_t kFewestPixels = 1;
#endif

// With strides and dilations of 1, all input channels for each output.
//
// The filter is that of `convolve`, of one group. Some of its panels at a time are transformed in
// scratch, to the points of a tile: so it takes no memory of its own, and where the image is small
// its weights are read once and not at every point. For g, a filter 3 x 3, that is
// G g transposed(G), where G is for tiles of 2 and 4:
//
//      1     0    0        1     0     0
//     1/2   1/2  1/2       1    1/r   1/2        r: the square root of 2
//     1/2  -1/2  1/2       1   -1/r   1/2
//      0     0    1        0     0     1
//                         1/2   1/r    1
//                         1/2  -1/r    1
//
// The last tiles of a row or column may be narrow: two results less, at the points but the last
// two.
struct WinogradConvolution {
  WinogradTile tile;
  std::array<std::uint32_t, 4> padding;  // top, right, bottom, left
  const float* filter;
  FloatStore store;
  void* scratch;              // aligned to 64 bytes
  std::size_t scratch_bytes;  // at least as winograd_scratch says; more take less time
  std::size_t num_threads;    // for which there is scratch; more are left idle
};

// Bytes that are needed at least to compute some rows of a result of so many rows and columns, from
// so many input channels, with so many threads. For bands it is the most that any of them needs.
std::size_t winograd_scratch(const WinogradTile& tile, std::size_t inputs, std::size_t num_rows,
                             std::size_t columns, RowRange rows, std::size_t num_threads);

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
