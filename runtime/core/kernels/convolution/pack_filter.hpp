// Packs weights that are computed in the run for convolutions.
#pragma once

#include <pthreadpool.h>

#include <cstddef>

namespace arenite {

// Where the weights of one group lie, in floats. Taps are a grid: rows of a window, and columns.
struct FilterPlaces {
  std::size_t outputs;
  std::size_t output_stride;
  std::size_t inputs;
  std::size_t input_stride;
  std::size_t rows;
  std::ptrdiff_t row_stride;
  std::size_t columns;
  std::ptrdiff_t column_stride;

  std::size_t taps() const { return rows * columns; }
};

// Packs one group as convolutions have it (convolve.hpp): the last panel is filled up with zeros.
// `first` is the weight of the first output, input and tap.
void pack_filter(const float* first, const FilterPlaces& places, float* packed,
                 pthreadpool_t threads);

// Packs one input as depthwise convolutions have it (depthwise.hpp): outputs side by side by taps.
void pack_depthwise_filter(const float* first, const FilterPlaces& places, float* packed,
                           pthreadpool_t threads);

}  // namespace arenite
