// Pools of floats: any rows of a result, from rows of an image.
#pragma once

#include <pthreadpool.h>

#include "kernels/image.hpp"
#include "kernels/sliding_window.hpp"

namespace arenite {

struct Pool {
  SlidingWindow window;
  bool is_average;
  bool counts_padding;  // an average is of the padding, too
  bool is_sum;          // an average is not divided
  float min;
  float max;
};

// Writes rows of the result, from the rows of the source under the windows. A window is summed up
// row by row, so a result is the same whichever rows are asked for together. A maximum of nothing
// is the lowest number that the bounds leave.
//
// All of the source may be read until the last row is written, so a result may not lie over it.
void pool(const Pool& pool, const Image<const float>& source, const Image<float>& result,
          RowRange rows, pthreadpool_t threads);

// Takes rows of the source into the sums of an average with one row, one for each element; they
// begin anew with row 0. With the last row of the source it writes the result: the same as above.
void take_rows(const Pool& pool, const Image<const float>& source, const Image<float>& result,
               RowRange rows, float* sums);

}  // namespace arenite
