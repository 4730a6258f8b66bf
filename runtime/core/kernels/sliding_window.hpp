// A window that slides over the rows and columns of an image: the one place that knows strides,
// dilations and padding.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/image.hpp"

namespace arenite {

struct SlidingWindow {
  std::array<std::uint32_t, 2> kernel;
  std::array<std::uint32_t, 2> strides;
  std::array<std::uint32_t, 2> dilations;
  std::array<std::uint32_t, 4> padding;  // top, right, bottom, left

  bool has_padding() const { return padding != std::array<std::uint32_t, 4>{}; }

  // Whether each pixel of the result is made from the same pixel.
  bool is_pointwise() const {
    constexpr std::array<std::uint32_t, 2> kOne{1, 1};
    return kernel == kOne && strides == kOne && !has_padding();
  }

  // Elements from the first tap to the last one, both included. Axis 0: the rows, 1: the columns.
  std::size_t extent(std::size_t axis) const {
    return std::size_t{dilations[axis]} * (kernel[axis] - 1) + 1;
  }

  // Where the first tap of a window lies; negative: in the padding before the image.
  std::int64_t place(std::size_t axis, std::size_t index) const {
    const std::int64_t before = axis == 0 ? padding[0] : padding[3];
    return static_cast<std::int64_t>(index) * strides[axis] - before;
  }
};

// The row of an image under a row of the windows of a row of the result; null in the padding.
template <typename T>
T* row_under(const SlidingWindow& window, const Image<T>& image, std::size_t row, std::size_t tap) {
  const std::int64_t y =
      window.place(0, row) + static_cast<std::int64_t>(tap) * std::int64_t{window.dilations[0]};
  const auto index = static_cast<std::size_t>(y);  // huge, if it is negative
  return index < image.rows ? image.row(index) : nullptr;
}

// Which of some pixels lie in an image.
struct PixelSpan {
  std::size_t first;
  std::size_t count;
};

// Of `count` pixels from `start` on, `step` apart, those that lie in [0, size).
inline PixelSpan inside_of(std::int64_t start, std::size_t count, std::size_t size,
                           std::size_t step = 1) {
  const auto reach = [step](std::int64_t distance) {
    return distance <= 0 ? 0 : (static_cast<std::size_t>(distance) + step - 1) / step;
  };
  const std::size_t first = std::min(reach(-start), count);
  const std::size_t end = std::min(reach(static_cast<std::int64_t>(size) - start), count);
  return {first, end > first ? end - first : 0};
}

// The taps [first, last) of a window that lie in an image, and those in the padded image.
struct WindowSpan {
  std::int64_t start;  // where tap 0 lies
  std::size_t first;
  std::size_t last;
  std::size_t padded;

  std::size_t inside() const { return last - first; }
};

inline WindowSpan window_span(const SlidingWindow& window, std::size_t axis, std::size_t index,
                              std::size_t size) {
  const std::size_t taps = window.kernel[axis];
  const std::int64_t start = window.place(axis, index);
  if (start >= 0 && static_cast<std::size_t>(start) + window.extent(axis) <= size) {
    return {start, 0, taps, taps};
  }
  const std::size_t after = axis == 0 ? window.padding[2] : window.padding[1];
  const std::size_t step = window.dilations[axis];
  const PixelSpan inside = inside_of(start, taps, size, step);
  const PixelSpan before_end = inside_of(start, taps, size + after, step);
  return {start, inside.first, inside.first + inside.count, before_end.first + before_end.count};
}

}  // namespace arenite
