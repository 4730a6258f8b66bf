// Averages of 8-bit integers under windows that share the sums of columns.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/image.hpp"
#include "kernels/pool_int8.hpp"
#include "kernels/window_span.hpp"

namespace arenite {

// A row of a result, of bytes that may have a sign, and the taps of its windows.
template <typename T>
struct AverageRow {
  const Int8Pool& pool;
  const Image<const T>& source;
  const WindowSpan& rows;
  std::size_t columns;  // of the result
  std::size_t pixel_stride;
  T* result;
};

// Writes the average of each channel under each window and returns true, or returns false where
// windows are not ones for it: those of many taps, or with gaps, or of few channels.
template <typename T>
using FindAverages = bool (*)(const AverageRow<T>& row);

// The one for the processor at hand.
template <typename T>
FindAverages<T> find_averages();
template <>
FindAverages<std::int8_t> find_averages<std::int8_t>();
template <>
FindAverages<std::uint8_t> find_averages<std::uint8_t>();

// What an average is divided by.
inline std::size_t average_divisor(const Int8Pool& pool, const WindowSpan& rows,
                                   const WindowSpan& columns) {
  const std::size_t inside = rows.inside() * columns.inside();
  return pool.is_sum           ? 1
         : pool.counts_padding ? rows.padded * columns.padded
                               : std::max<std::size_t>(inside, 1);
}

}  // namespace arenite
