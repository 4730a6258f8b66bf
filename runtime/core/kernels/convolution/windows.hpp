// What lies under the windows of a convolution, copied for tiles.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/convolution/tile.hpp"
#include "kernels/image.hpp"
#include "kernels/sliding_window.hpp"

namespace arenite {

// The one place that knows padding, strides, dilations, groups and where the rows of a source lie:
// what multiplies reads a copy.
class Windows {
 public:
  // The result's pixels are numbered row by row from its row `first_row` on; `channels` are those
  // of a group.
  Windows(const SlidingWindow& window, const Image<const float>& source, std::size_t channels,
          std::size_t first_row, std::size_t columns);

  // Copies what is under the windows of some pixels, of a group's channels from `channel` on: of
  // each window the elements from `depth` on, with zeros for what is outside of the source.
  // Between the copies for two pixels lie kTileStride floats.
  void copy(std::size_t pixel, std::size_t num_pixels, std::size_t channel, std::size_t depth,
            std::size_t num_depth, float* copies) const;

  // Rows of windows can be read where they lie if their elements lie side by side and are many,
  // unless pixels lie so far apart that few of them are in the first cache together.
  bool are_rows_readable() const;

  // Where elements of one row of each window lie, those outside of the source in copies.
  void find(std::size_t pixel, std::size_t num_pixels, std::size_t channel, std::size_t depth,
            std::size_t num_depth, float* copies, const float** found) const;

  // The index in kTileSteps of the floats between windows side by side, if rows of a window are
  // runs of floats; else their number.
  std::size_t row_step_index() const;

  // Where the rows of the first window lie, if pixels lie side by side in a row of the result and
  // nothing under their windows is outside of the source; false if it is not so.
  bool find_rows(std::size_t pixel, std::size_t num_pixels, const float** rows) const;

 private:
  // Elements of a row of a window that lie side by side in the source, for pixels in one row.
  struct Piece {
    std::int64_t column;  // of the source, under the first of the pixels
    std::size_t offset;   // from that column's first channel
    std::size_t size;
    std::size_t num_pixels;
  };

  void copy_row(const float* row, std::size_t result_column, std::size_t num_pixels,
                std::size_t offset, std::size_t size, float* copies) const;
  void copy_piece(const float* row, const Piece& piece, float* copies) const;

  const Image<const float>& source_;
  const TileKernels& kernels_;
  std::size_t columns_;
  std::size_t first_row_;
  std::int64_t top_;
  std::int64_t left_;
  std::int64_t row_step_;
  std::int64_t column_step_;
  std::int64_t row_dilation_;
  std::int64_t column_dilation_;
  std::size_t channels_;
  std::size_t row_depth_;  // elements of one row of a window
  std::int64_t num_rows_;  // of a window
  std::int64_t num_columns_;
  bool is_contiguous_;  // the pixels under a row of a window lie side by side
};

}  // namespace arenite
