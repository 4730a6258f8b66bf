// The largest of 8-bit integers under a window.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/image.hpp"
#include "kernels/sliding_window.hpp"
#include "kernels/window_span.hpp"

namespace arenite {

// A row of a result, of bytes that may have a sign, and the taps of its windows.
template <typename T>
struct LargestRow {
  const SlidingWindow& window;
  const Image<const T>& source;
  const WindowSpan& rows;
  std::size_t columns;  // of the result
  std::size_t pixel_stride;
  T min;  // of what is stored
  T max;
  T* result;
};

// Writes the largest element of each channel under each window, between two bounds; of no taps, the
// lower one.
template <typename T>
using FindLargest = void (*)(const LargestRow<T>& row);

// The one for the processor at hand.
template <typename T>
FindLargest<T> find_largest();
template <>
FindLargest<std::int8_t> find_largest<std::int8_t>();
template <>
FindLargest<std::uint8_t> find_largest<std::uint8_t>();

}  // namespace arenite
