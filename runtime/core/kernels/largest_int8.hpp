// The largest of 8-bit integers under a window.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/image.hpp"
#include "kernels/sliding_window.hpp"
#include "kernels/window_span.hpp"

namespace arenite {

// The taps of a window that lie inside, in a source of bytes; the elements may have a sign.
template <typename T>
struct WindowTaps {
  const SlidingWindow& window;
  const Image<const T>& source;
  const WindowSpan& rows;
  const WindowSpan& columns;
};

// Writes the largest element of each channel, between two bounds; of no taps, the lower one.
template <typename T>
using FindLargest = void (*)(const WindowTaps<T>& taps, T min, T max, T* largest);

// The one for the processor at hand.
template <typename T>
FindLargest<T> find_largest();
template <>
FindLargest<std::int8_t> find_largest<std::int8_t>();
template <>
FindLargest<std::uint8_t> find_largest<std::uint8_t>();

}  // namespace arenite
