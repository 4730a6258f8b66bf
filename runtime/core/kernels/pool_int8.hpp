// 8-bit pools: any rows of a result from rows of an image.
#pragma once

#include <pthreadpool.h>

#include <cstddef>
#include <cstdint>

#include "kernels/image.hpp"
#include "kernels/sliding_window.hpp"

namespace arenite {

struct Int8Pool {
  SlidingWindow window;
  bool is_average;
  bool counts_padding;  // an average includes the padding
  bool is_sum;          // an average is not divided
  float ratio;          // source scale / result scale
  std::int32_t source_zero_point;
  std::int32_t zero_point;  // of the result
  std::int32_t min;         // bounds of the result, within its type
  std::int32_t max;
};

// Writes rows of the result from the rows of the source under the windows. Each result is rounded
// once, halves to the even one, and does not depend on the rows that are made together. Uses less
// than 3 KB of stack.
//
// All of the source may be read until the last row is written, so a result may not lie over it.
void pool(const Int8Pool& pool, const Image<const std::int8_t>& source,
          const Image<std::int8_t>& result, RowRange rows, pthreadpool_t threads);
void pool(const Int8Pool& pool, const Image<const std::uint8_t>& source,
          const Image<std::uint8_t>& result, RowRange rows, pthreadpool_t threads);

// Adds rows of the source to the sums of an average with one row of output, one sum an element;
// row 0 clears them. After the last row of the source it writes the same result as above.
void take_rows(const Int8Pool& pool, const Image<const std::int8_t>& source,
               const Image<std::int8_t>& result, RowRange rows, std::int32_t* sums);
void take_rows(const Int8Pool& pool, const Image<const std::uint8_t>& source,
               const Image<std::uint8_t>& result, RowRange rows, std::int32_t* sums);

}  // namespace arenite
