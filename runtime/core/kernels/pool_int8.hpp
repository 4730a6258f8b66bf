// Pools of 8-bit integers: any rows of a result, from rows of an image.
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
  bool counts_padding;  // an average is of the padding, too
  bool is_sum;          // an average is not divided
  float ratio;          // of the source's scale to that of the result
  std::int32_t source_zero_point;
  std::int32_t zero_point;  // of the result
  std::int32_t min;         // of what is stored, within its type
  std::int32_t max;
};

// Writes rows of the result, from the rows of the source under the windows. What a window makes is
// rounded once, halves to the even one. Uses less than three kilobytes of stack; a result is the
// same whichever rows are asked for together.
//
// All of the source may be read until the last row is written, so a result may not lie over it.
void pool(const Int8Pool& pool, const Image<const std::int8_t>& source,
          const Image<std::int8_t>& result, RowRange rows, pthreadpool_t threads);
void pool(const Int8Pool& pool, const Image<const std::uint8_t>& source,
          const Image<std::uint8_t>& result, RowRange rows, pthreadpool_t threads);

// Takes rows of the source into the sums of an average with one row, one for each element; they
// begin anew with row 0. With the last row of the source it writes the result: the same as above.
void take_rows(const Int8Pool& pool, const Image<const std::int8_t>& source,
               const Image<std::int8_t>& result, RowRange rows, std::int32_t* sums);
void take_rows(const Int8Pool& pool, const Image<const std::uint8_t>& source,
               const Image<std::uint8_t>& result, RowRange rows, std::int32_t* sums);

}  // namespace arenite
