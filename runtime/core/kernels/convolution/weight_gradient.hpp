// The gradient of a convolution's weights.
#pragma once

#include <pthreadpool.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace arenite {

// A convolution of images N, H, W, C whose result has the gradient N, H', W', M. All lie without
// gaps.
struct ConvolvedImages {
  std::size_t images;
  std::size_t rows;
  std::size_t columns;
  std::size_t result_rows;
  std::size_t result_columns;
  std::size_t groups;
  std::size_t channels;  // of a group
  std::size_t outputs;   // of a group
  std::array<std::uint32_t, 2> kernel;
  std::array<std::uint32_t, 2> strides;
  std::array<std::uint32_t, 2> dilations;
  std::array<std::uint32_t, 2> before;  // rows and columns of zeros around the image, at its start

  std::size_t taps() const { return std::size_t{kernel[0]} * kernel[1]; }
  std::size_t pixels() const { return images * result_rows * result_columns; }
};

// Makes M, C / groups, kernel rows, kernel columns, the same to the bit on any number of threads.
// What windows read outside of an image is zero.
void weight_gradient(const ConvolvedImages& shape, const float* source, const float* gradient,
                     float* result, pthreadpool_t threads);

}  // namespace arenite
