// Float pools: any rows of a result from rows of an image.
#pragma once

#include <pthreadpool.h>

#include "kernels/image.hpp"
#include "kernels/sliding_window.hpp"

namespace arenite {

struct Pool {
  SlidingWindow window;
  bool is_average;
  bool counts_padding;  // an average includes the padding
  bool is_sum;          // an average is not divided
  float min;
  float max;
};

// Writes rows of the result from the rows of the source under the windows. Sums are taken row by
// row: a result does not depend on the rows that are made together. The maximum of an empty window
// is the lower bound.
//
// All of the source may be read until the last row is written, so a result may not lie over it.
void pool(const Pool& pool, const Image<const float>& source, const Image<float>& result,
          RowRange rows, pthreadpool_t threads);

// Adds rows of the source to the sums of an average with one row of output, one sum an element;
// row 0 clears them. After the last row of the source it writes the same result as above.
void take_rows(const Pool& pool, const Image<const float>& source, const Image<float>& result,
               RowRange rows, float* sums);

}  // namespace arenite
