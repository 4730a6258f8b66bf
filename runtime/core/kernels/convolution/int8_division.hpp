// How an 8-bit convolution is divided: into parts that fit the stack and the caches, and the depth
// of a pixel into runs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/convolution/int8_kernel.hpp"
#include "kernels/parallel.hpp"

namespace arenite {

// Runs of depth that lie apart in rows of the source.
constexpr std::size_t kMostRuns = 64;
// Bytes of the source's rows under a part of a row of the result.
constexpr std::size_t kRowBytes = std::size_t{32} * 1024;
// Bytes of depth that are gathered together.
constexpr std::size_t kMostGathered = 512;
constexpr std::size_t kGatheredBytes = 14 * (kMostGathered + 3 * kInt8Vector);
// Pixels of which pieces of depth are gathered, and what holds their sums between pieces.
constexpr std::size_t kPiecePixels = 14;
constexpr std::size_t kSumBytes = kPiecePixels * kInt8Block * sizeof(std::int32_t);
// Bytes of weights that stay in the second cache while all rows pass.
constexpr std::size_t kCachedWeights = std::size_t{448} * 1024;
// Parts that are too few to keep threads equally busy.
constexpr std::size_t kFewParts = 8;
constexpr std::size_t kPanels = 2;  // that tiles take together, on some processors
constexpr std::size_t kPair = kPanels * kInt8Panel;
constexpr std::size_t kSlack = 3 * kInt8Vector;  // behind a copied row

inline std::size_t int8_panel_bytes(std::size_t depth) {
  return kInt8Panel * (sizeof(std::int32_t) + round_up(depth, kInt8Quad));
}

// What results are.
enum class Int8Results { bytes, sums, floats };

// A convolution and its images, whichever sign their bytes have.
struct Int8Given {
  const Int8Convolution& convolution;
  const Image<const std::uint8_t>& source;
  const Image<std::uint8_t>& result;
  RowRange rows;
  std::uint8_t flip;     // of the source's signs, for the kernel
  std::int32_t zero;     // the source's zero point as flipped
  const Int8Sums* sums;  // of results that are not bytes, or have an addend
  Int8Results results;   // strides are of bytes, whichever they are
};

// A part is some rows of the result, or parts of rows where little of the source fits the stack,
// for a block of output channels. Kernels find the depth of a pixel as runs: in the source, where
// its bytes can be taken as they are; in copies of its rows with their padding; in pixels gathered
// from such rows, where the runs of these are not whole quads; or, of windows for which even one
// pixel is too much, in pieces of depth gathered from the source.
class Int8Division {
 public:
  // `is_shared`: several threads take parts.
  Int8Division(const Int8Given& given, const Int8Kernel& kernel, bool is_shared)
      : given_(given),
        window_(given.convolution.window),
        kernel_(kernel),
        inputs_(given.source.channels / given.convolution.groups),
        outputs_(given.result.channels / given.convolution.groups),
        depth_(inputs_ * window_.kernel[0] * window_.kernel[1]),
        panel_bytes_(int8_panel_bytes(depth_)),
        rows_(given.rows.count),
        columns_(given.result.columns),
        source_columns_(given.source.columns),
        weight_zero_(static_cast<std::uint32_t>(given.convolution.filter_zero_point)),
        has_zeros_(weight_zero_ != 0 ||
                   (given.sums != nullptr && given.sums->filter_zero_points != nullptr)),
        result_bytes_(given.results == Int8Results::bytes ? 1 : sizeof(std::int32_t)) {
    choose_blocks();
    choose_runs();
    choose_parts(is_shared);
    const std::size_t copies = kernel.widen == nullptr ? 1 : 1 + kernel.element_bytes;
    stride_ =
        in_pieces_ ? kMostGathered + kInt8Vector : round_up(depth_ - run_ + vector_, kInt8Vector);
    const std::size_t room = in_pieces_ ? kRowBytes - kSumBytes : kGatheredBytes;
    const std::size_t fit = room / (copies * stride_);
    const std::size_t whole = fit / kernel.wide.pixels * kernel.wide.pixels;
    most_ = whole == 0 ? fit : whole;
    most_ = in_pieces_ ? std::min(most_, kPiecePixels) : most_;
  }

  // Rows follow one another, so that what they share is copied once.
  std::size_t num_parts() const { return given_.convolution.groups * blocks_ * parts_ * rows_; }

  std::size_t cost() const {
    return std::min(part_, columns_) * depth_ * std::min(block_, outputs_) / 64;
  }

 protected:
  // Bytes of the stack for copied rows, with those that vectors reach behind the last.
  std::size_t bytes_of_rows() const {
    if (in_pieces_) { return kRowBytes + kSlack; }
    return is_in_place_ ? 0 : window_.kernel[0] * slot_size_ + kSlack;
  }

  // The same for gathered pixels.
  std::size_t bytes_of_gathered() const {
    if (in_pieces_ || !is_gathered_) { return 0; }
    const std::size_t copies = kernel_.widen == nullptr ? 1 : 1 + kernel_.element_bytes;
    return std::min(most_, std::min(part_, columns_)) * copies * stride_ + kSlack;
  }

  const Int8Given& given_;
  const SlidingWindow& window_;
  const Int8Kernel& kernel_;
  std::size_t inputs_;   // channels of a group
  std::size_t outputs_;  // channels of a group
  std::size_t depth_;    // taps of the window times the inputs
  std::size_t panel_bytes_;
  std::size_t rows_;     // of the result; one where all pixels are taken as one long row
  std::size_t columns_;  // the same
  std::size_t source_columns_;
  std::uint32_t weight_zero_;
  bool has_zeros_;            // the filter has zero points other than 0
  std::size_t result_bytes_;  // of an element
  std::size_t block_;         // output channels
  std::size_t blocks_;
  std::size_t part_;  // columns
  std::size_t parts_;
  std::size_t run_;  // elements of depth
  std::size_t num_runs_;
  std::size_t vector_;     // bytes that a run is gathered by, with a quad behind it
  std::size_t element_;    // bytes of one in a copied row
  std::size_t slot_size_;  // bytes of a copied row
  std::size_t step_;       // bytes from one pixel of the source to the next, where runs begin
  std::size_t stride_;     // bytes from one gathered pixel to the next
  std::size_t most_;       // pixels that are gathered together
  bool is_apart_;          // the taps of a row are dilated
  bool is_gathered_;       // runs are not whole quads
  bool is_in_place_;       // the source is read where it lies
  bool in_pieces_;         // of depth

 private:
  // Blocks of equal size, of an even number of panels.
  void choose_blocks() {
    const std::size_t fit =
        std::max<std::size_t>(kPanels, kCachedWeights / panel_bytes_ / kPanels * kPanels);
    block_ = std::min(kInt8Block / kInt8Panel, fit) * kInt8Panel;
    blocks_ = divide_up(outputs_, block_);
    block_ = round_up(divide_up(outputs_, blocks_), kPair);
    blocks_ = divide_up(outputs_, block_);
  }

  void choose_runs() {
    const auto& source = given_.source;
    const auto& result = given_.result;
    const bool is_pixel = window_.kernel[0] == 1 && window_.kernel[1] == 1;
    const bool has_padding = window_.has_padding();
    is_apart_ = window_.dilations[1] != 1 && window_.kernel[1] != 1;
    run_ = is_apart_ ? inputs_ : inputs_ * window_.kernel[1];
    num_runs_ = depth_ / run_;
    is_gathered_ = run_ % kInt8Quad != 0 || (kernel_.widen != nullptr && inputs_ % kInt8Quad != 0);
    element_ = is_gathered_ ? 1 : kernel_.element_bytes;
    const std::size_t filled = run_ + kInt8Quad;
    vector_ = filled <= 16 ? 16 : filled <= 32 ? 32 : round_up(filled, kInt8Vector);
    const auto follow = [](const auto& image) {
      return image.rows == 1 || (image.row_offsets == nullptr &&
                                 image.row_stride == image.columns * image.pixel_stride);
    };
    if (is_pixel && !has_padding && window_.strides[0] == 1 && window_.strides[1] == 1 &&
        source.columns == result.columns && follow(source) && follow(result)) {
      columns_ *= rows_;  // as one long row
      source_columns_ = columns_;
      rows_ = 1;
    }
    is_in_place_ =
        given_.flip == 0 && element_ == 1 && !is_gathered_ && !has_padding &&
        (is_pixel || source.pixel_stride == inputs_) &&
        (result.columns - 1) * window_.strides[1] + window_.extent(1) <= source.columns &&
        (result.rows - 1) * window_.strides[0] + window_.extent(0) <= source.rows;
    step_ = is_in_place_ ? source.pixel_stride : inputs_ * element_;
  }

  void choose_parts(bool is_shared) {
    const std::size_t tile = kernel_.wide.pixels;
    // Half of the bytes leaves room for weights in the first cache.
    part_ = columns_that_fit(kRowBytes / 2);
    if (part_ < columns_) {  // whole tiles, or at least one
      part_ = part_ < tile ? std::min(columns_that_fit(kRowBytes), tile) : part_ / tile * tile;
    }
    in_pieces_ = part_ == 0 || num_runs_ > kMostRuns || (is_gathered_ && depth_ > kMostGathered);
    part_ = in_pieces_ ? columns_ : part_;
    if (is_shared && given_.convolution.groups * blocks_ * rows_ < kFewParts) {
      part_ = std::min(part_, round_up(divide_up(columns_, kFewParts), tile));
    }
    parts_ = divide_up(columns_, part_);
    slot_size_ = row_bytes(std::min(part_, columns_));
  }

  // Bytes of a copied row under so many columns of the result.
  std::size_t row_bytes(std::size_t count) const {
    const std::size_t pixels = (count - 1) * window_.strides[1] + window_.extent(1);
    return round_up(pixels * inputs_ * element_, kInt8Vector) + kSlack;
  }

  // Columns of the result whose rows of the source fit so many bytes.
  std::size_t columns_that_fit(std::size_t bytes) const {
    const std::size_t slot = bytes / window_.kernel[0] / kInt8Vector * kInt8Vector;
    const std::size_t pixels =
        slot < kInt8Vector + kSlack ? 0 : (slot - kInt8Vector - kSlack) / (inputs_ * element_);
    if (pixels < window_.extent(1)) { return 0; }
    return std::min((pixels - window_.extent(1)) / window_.strides[1] + 1, columns_);
  }
};

}  // namespace arenite
