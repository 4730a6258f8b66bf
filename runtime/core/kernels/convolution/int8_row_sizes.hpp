// The sizes of a convolution of 8-bit integers by rows, and the parts that its work is done in:
// rows of the result, or parts of them where little fits the stack, for blocks of output channels.
#pragma once

#include <cstddef>

#include "kernels/convolution/convolve_int8_rows.hpp"
#include "kernels/convolution/int8_row_kernel.hpp"

namespace arenite {

// Bytes of the widest vector, up to which more than is wanted may be read or written.
constexpr std::size_t kInt8RowVector = 64;
// Runs of depth that lie side by side in the source, one behind another in the filter.
constexpr std::size_t kInt8MostRuns = 64;
// Bytes of the source's rows under one row of the result, or under a part of it.
constexpr std::size_t kInt8RowBytes = std::size_t{32} * 1024;
// Bytes of depth that pixels are gathered to where the runs are not whole quads.
constexpr std::size_t kInt8Gathered = 512;
// Output channels whose sums begin at once.
constexpr std::size_t kInt8RowBlock = 256;

struct Int8RowSizes {
  // `is_shared`: several threads take parts.
  Int8RowSizes(const Int8ConvolutionRows& given, const Int8RowKernel& kernel, bool is_shared);

  // Of a window, along an axis.
  std::size_t extent(std::size_t axis) const {
    return std::size_t{window.dilations[axis]} * (window.kernel[axis] - 1) + 1;
  }

  const SlidingWindow& window;
  std::size_t inputs;          // channels of a group
  std::size_t outputs;         // the same
  std::size_t depth;           // taps of the window times the inputs
  std::size_t panel_bytes;     // of a packed filter
  std::size_t rows;            // of the result; one where pixels are taken as one long row
  std::size_t columns;         // the same
  std::size_t source_columns;  // the same
  std::size_t block;           // output channels
  std::size_t blocks;
  std::size_t part;  // columns; none: no row fits
  std::size_t parts;
  std::size_t run;  // elements of depth
  std::size_t num_runs;
  std::size_t vector;     // bytes that a run is gathered by, with a quad behind it
  std::size_t element;    // bytes of it in a row of the source, on the stack
  std::size_t slot_size;  // bytes of such a row
  std::size_t step;       // bytes from one pixel of the source to the next, where runs are found
  bool is_apart;          // taps of a row, by dilation
  bool is_gathered;       // pixels, since their runs are not whole quads, or begin in one
  bool is_in_place;       // the source is read where it lies
  bool fits;              // the convolution is one to make by rows

 private:
  std::size_t tile_;  // pixels

  std::size_t row_bytes(std::size_t count) const;
  std::size_t columns_that_fit(std::size_t bytes) const;
};

}  // namespace arenite
