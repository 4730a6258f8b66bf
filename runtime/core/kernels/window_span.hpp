// Which taps of a window lie inside an image, along one axis.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/sliding_window.hpp"

namespace arenite {

// Taps [first, last) of a window lie inside, and so many in the padded image.
struct WindowSpan {
  std::int64_t start;  // where tap 0 lies
  std::size_t first;
  std::size_t last;
  std::size_t padded;

  std::size_t inside() const { return last > first ? last - first : 0; }
};

// Of the window at a place along an axis of an image that is so long; 0: the rows, 1: the columns.
inline WindowSpan window_span(const SlidingWindow& window, std::size_t axis, std::size_t place,
                              std::size_t length) {
  const std::int64_t before = axis == 0 ? window.padding[0] : window.padding[3];
  const std::int64_t after = axis == 0 ? window.padding[2] : window.padding[1];
  const auto size = static_cast<std::int64_t>(length);
  const std::size_t taps = window.kernel[axis];
  const std::int64_t dilation = window.dilations[axis];
  const std::int64_t start = static_cast<std::int64_t>(place) * window.strides[axis] - before;
  if (start >= 0 && start + static_cast<std::int64_t>(taps - 1) * dilation < size) {
    return {start, 0, taps, taps};
  }
  WindowSpan found{start, taps, 0, 0};
  for (std::size_t k = 0; k < taps; ++k) {
    const std::int64_t at = start + static_cast<std::int64_t>(k) * dilation;
    if (at >= 0 && at < size) {
      found.first = std::min(found.first, k);
      found.last = k + 1;
    }
    found.padded += at < size + after ? 1 : 0;
  }
  return found;
}

}  // namespace arenite
