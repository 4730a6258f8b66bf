// The source's elements under the windows of a convolution, for tiles.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/convolution/tile.hpp"
#include "kernels/image.hpp"
#include "kernels/sliding_window.hpp"

namespace arenite {

// Finds the source's elements for products: in place, or copied with zeros for the padding.
class Windows {
 public:
  // The result's pixels are numbered row by row from its row `first_row` on; `channels` are those
  // of a group.
  Windows(const SlidingWindow& window, const Image<const float>& source, std::size_t channels,
          std::size_t first_row, std::size_t columns);

  // Copies the elements under the windows of some pixels, for the channels of a group from
  // `channel` on: of each window the elements from `depth` on, with zeros for the padding. The
  // copies of two pixels lie kTileStride floats apart.
  void copy(std::size_t pixel, std::size_t num_pixels, std::size_t channel, std::size_t depth,
            std::size_t num_depth, float* copies) const;

  // Rows of windows are read in place if they are contiguous and long, unless pixels lie so far
  // apart that few of them fit the first cache together.
  bool are_rows_readable() const;

  // Finds the elements of one row of each window, in place or, with padding, in copies.
  void find(std::size_t pixel, std::size_t num_pixels, std::size_t channel, std::size_t depth,
            std::size_t num_depth, float* copies, const float** found) const;

  // The index in kTileSteps of the floats between windows side by side, if rows of a window are
  // runs of floats; else their number.
  std::size_t row_step_index() const;

  // Finds the rows of the first window and returns true, if the pixels are in one row of the result
  // and no window reaches into the padding.
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

  const SlidingWindow& window_;
  const Image<const float>& source_;
  const TileKernels& kernels_;
  std::size_t columns_;
  std::size_t first_row_;
  std::int64_t column_step_;
  std::size_t channels_;
  std::size_t row_depth_;  // elements of one row of a window
  bool is_contiguous_;     // the pixels under a row of a window lie side by side
};

}  // namespace arenite
