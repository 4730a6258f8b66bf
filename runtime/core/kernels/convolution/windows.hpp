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
  // `channels` are those of a group, `columns` those of the result.
  Windows(const SlidingWindow& window, const Image<const float>& source, std::size_t channels,
          std::size_t columns);

  // Copies the elements under the windows of pixels from a row and column on, row after row, for
  // the channels of a group from `channel` on: of each window the elements from `depth` on, with
  // zeros for the padding. The copies of two pixels lie kTileStride floats apart.
  void copy(std::size_t row, std::size_t column, std::size_t num_pixels, std::size_t channel,
            std::size_t depth, std::size_t num_depth, float* copies) const;

  // Whether a row of a window is a run of floats, unless pixels lie so far apart that few of them
  // fit the first cache together.
  bool has_runs() const {
    constexpr std::size_t kSameLines = 1024;
    return (is_contiguous_ || window_.kernel[1] == 1) && (kPacksPixels || step() % kSameLines != 0);
  }
  // Floats from a window to the next one in a row of the result.
  std::size_t step() const { return static_cast<std::size_t>(column_step_) * source_.pixel_stride; }
  // Floats under a row of the windows of so many pixels.
  std::size_t span(std::size_t num_pixels) const { return (num_pixels - 1) * step() + row_depth_; }

  // Finds some rows of the source under a row of the result, from `channel` on, and tells whether
  // all of them exist.
  bool find_rows(std::size_t row, std::size_t channel, std::size_t first, std::size_t count,
                 const float** rows) const;
  // Floats from there to the window of a column of the result; negative in the padding.
  std::ptrdiff_t begin(std::size_t column) const {
    return static_cast<std::ptrdiff_t>(window_.place(1, column)) *
           static_cast<std::ptrdiff_t>(source_.pixel_stride);
  }
  // Whether a row of the source has all floats under the windows of so many pixels.
  bool is_inside(std::size_t column, std::size_t num_pixels) const {
    const std::ptrdiff_t first = begin(column);
    const std::size_t end = source_.columns * source_.pixel_stride;
    return first >= 0 && static_cast<std::size_t>(first) + span(num_pixels) <= end;
  }

  // Finds some rows of the window of the first of some pixels in a row of the result: in place, or
  // where a window reaches into the padding in copies, as far apart as their spans. With `held`
  // those of all rows of the window stay for later rows of the result; it begins with zeros.
  void find_runs(std::size_t row, std::size_t column, std::size_t num_pixels, std::size_t channel,
                 std::size_t first, std::size_t count, float* copies, const float** runs,
                 std::size_t* held = nullptr) const;

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
  std::int64_t column_step_;
  std::size_t channels_;
  std::size_t row_depth_;  // elements of one row of a window
  bool is_contiguous_;     // the pixels under a row of a window lie side by side
};

}  // namespace arenite
