#include "int8_row_sizes.hpp"

#include <algorithm>
#include <array>

namespace arenite {

namespace {

constexpr std::size_t kPanels = 2;
constexpr std::size_t kPair = kPanels * kInt8Panel;
constexpr std::size_t kSlack = 3 * kInt8RowVector;  // behind a row of the source
// Bytes of weights that stay in the second cache while all rows pass.
constexpr std::size_t kCachedWeights = std::size_t{448} * 1024;
// Parts that are too few for threads to have as much to do as each other.
constexpr std::size_t kFewParts = 8;
// Bytes of the vectors that short runs are gathered by.
constexpr std::size_t kNarrowest = 16;
constexpr std::size_t kNarrow = 32;

constexpr std::size_t divide_up(std::size_t a, std::size_t b) { return (a + b - 1) / b; }

}  // namespace

Int8RowSizes::Int8RowSizes(const Int8ConvolutionRows& given, const Int8RowKernel& kernel,
                           bool is_shared)
    : window(given.convolution.window),
      inputs(given.source.channels / given.convolution.groups),
      outputs(given.result.channels / given.convolution.groups),
      depth(inputs * window.kernel[0] * window.kernel[1]),
      panel_bytes(kInt8Panel * (sizeof(std::int32_t) + divide_up(depth, kInt8Quad) * kInt8Quad)),
      rows(given.rows.count),
      columns(given.result.columns),
      source_columns(given.source.columns),
      tile_(kernel.wide.pixels) {
  const auto& source = given.source;
  const auto& result = given.result;
  const std::size_t fit =
      std::max<std::size_t>(kPanels, kCachedWeights / panel_bytes / kPanels * kPanels);
  block = std::min(kInt8RowBlock / kInt8Panel, fit) * kInt8Panel;
  blocks = divide_up(outputs, block);
  // Blocks as large as each other, of an even number of panels.
  block = divide_up(divide_up(outputs, blocks), kPair) * kPair;
  blocks = divide_up(outputs, block);
  const bool is_pixel = window.kernel[0] == 1 && window.kernel[1] == 1;
  is_apart = window.dilations[1] != 1 && window.kernel[1] != 1;
  run = is_apart ? inputs : inputs * window.kernel[1];
  num_runs = depth / run;
  is_gathered = run % kInt8Quad != 0 || (kernel.widen != nullptr && inputs % kInt8Quad != 0);
  element = is_gathered ? 1 : kernel.element_bytes;
  const std::size_t filled = run + kInt8Quad;
  vector = filled <= kNarrowest ? kNarrowest
           : filled <= kNarrow  ? kNarrow
                                : divide_up(filled, kInt8RowVector) * kInt8RowVector;
  const auto follow = [](const auto& image) {
    return image.rows == 1 ||
           (image.row_offsets == nullptr && image.row_stride == image.columns * image.pixel_stride);
  };
  const bool has_padding = window.padding != std::array<std::uint32_t, 4>{};
  if (is_pixel && !has_padding && window.strides[0] == 1 && window.strides[1] == 1 &&
      source.columns == result.columns && follow(source) && follow(result)) {
    columns *= rows;  // as one long row
    source_columns = columns;
    rows = 1;
  }
  is_in_place = given.flip == 0 && element == 1 && !is_gathered && !has_padding &&
                (is_pixel || source.pixel_stride == inputs) &&
                (result.columns - 1) * window.strides[1] + extent(1) <= source.columns &&
                (result.rows - 1) * window.strides[0] + extent(0) <= source.rows;
  // Half of the bytes leaves room for weights in the first cache.
  part = columns_that_fit(kInt8RowBytes / 2);
  if (part < columns) {  // whole tiles, or at least one
    part = part < tile_ ? std::min(columns_that_fit(kInt8RowBytes), tile_) : part / tile_ * tile_;
  }
  if (is_shared && given.convolution.groups * blocks * rows < kFewParts) {
    const std::size_t tiles = divide_up(divide_up(columns, kFewParts), tile_);
    part = std::min(part, tiles * tile_);
  }
  parts = part == 0 ? 0 : divide_up(columns, part);
  slot_size = part == 0 ? 0 : row_bytes(std::min(part, columns));
  step = is_in_place ? source.pixel_stride : inputs * element;
  fits = parts > 0 && num_runs <= kInt8MostRuns && (!is_gathered || depth <= kInt8Gathered);
}

// Bytes of one row of the source under so many columns of the result.
std::size_t Int8RowSizes::row_bytes(std::size_t count) const {
  const std::size_t bytes = ((count - 1) * window.strides[1] + extent(1)) * inputs * element;
  return divide_up(bytes, kInt8RowVector) * kInt8RowVector + kSlack;
}

// Columns of the result, at most all, whose rows of the source fit so many bytes.
std::size_t Int8RowSizes::columns_that_fit(std::size_t bytes) const {
  const std::size_t slots = window.kernel[0];
  const std::size_t slot = bytes / slots / kInt8RowVector * kInt8RowVector;
  const std::size_t pixels =
      slot < kInt8RowVector + kSlack ? 0 : (slot - kInt8RowVector - kSlack) / (inputs * element);
  if (pixels < extent(1)) {
    return 0;
  }
  return std::min((pixels - extent(1)) / window.strides[1] + 1, columns);
}

}  // namespace arenite
