// What the phases of a transposed convolution read and make: images with gaps, and windows.
#pragma once

#include <algorithm>

#include "kernels/image.hpp"
#include "steps/transposed_filter.hpp"

namespace arenite {

inline bool has_taps(const Phase& row, const Phase& column) {
  return row.num_taps != 0 && column.num_taps != 0;
}

// The pixels of two phases, and what is read for them.
template <typename T>
struct PhaseImages {
  SlidingWindow window;
  Image<const T> source;
  Image<T> result;

  // `offsets` are those of the phase's rows of the result, where that has any.
  PhaseImages(const Phase& row, const Phase& column, const Image<const T>& whole_source,
              const Image<T>& whole_result, const StepVector<std::uint64_t>& offsets)
      : source(whole_source), result(whole_result) {
    const auto taps = [&](const Phase& phase) {
      return has_taps(row, column) ? static_cast<std::uint32_t>(phase.num_taps) : 1u;
    };
    // Windows lead beyond the last rows and columns, where there may be less of the source than of
    // the result.
    window = {{taps(row), taps(column)},
              {1, 1},
              {row.dilation, column.dilation},
              {row.padding, 1, 1, column.padding}};
    const std::size_t rows = std::min(row.skipped, source.rows);
    const std::size_t columns = std::min(column.skipped, source.columns);
    source.data += columns * source.pixel_stride;
    source.columns -= columns;
    source.rows -= rows;
    if (source.row_offsets != nullptr) {
      source.row_offsets += rows;
    } else {
      source.data += rows * source.row_stride;
    }
    result.data += column.first * result.pixel_stride;
    result.columns = column.count;
    result.pixel_stride *= column.stride;
    result.rows = row.count;
    if (result.row_offsets != nullptr) {
      result.row_offsets = offsets.data();
    } else {
      result.data += row.first * result.row_stride;
      result.row_stride *= row.stride;
    }
  }
};

}  // namespace arenite
