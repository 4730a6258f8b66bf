// Images as kernels see them: row by row, wherever the rows lie.
#pragma once

#include <cstddef>

namespace arenite {

// One image, channels last. Row r lies where row r + held_rows would: held_rows is `rows` where all
// of them are in memory, fewer in a ring that holds the last ones only.
template <typename T>
struct Image {
  T* data;
  std::size_t rows;
  std::size_t columns;
  std::size_t channels;
  std::size_t pixel_stride;  // elements
  std::size_t row_stride;    // elements
  std::size_t held_rows;

  T* row(std::size_t index) const { return data + index % held_rows * row_stride; }
};

struct RowRange {
  std::size_t first;
  std::size_t count;
};

}  // namespace arenite
