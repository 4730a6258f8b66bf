// Tensors as the images of kernels.
#pragma once

#include <type_traits>

#include "kernels/image.hpp"
#include "tensor_view.hpp"

namespace arenite {

// The first image of a tensor N, H, W, C.
template <typename T>
Image<T> first_image(const TensorView& view) {
  const std::size_t columns = view.shape[2];
  const std::size_t channels = view.shape[3];
  auto* data = view.as<std::remove_const_t<T>>();
  return {data, view.shape[1], columns, channels, channels, columns * channels, view.rows};
}

// All elements along the last axis as the pixels of one row.
template <typename T>
Image<T> as_pixels(const TensorView& view, std::size_t count) {
  const std::size_t channels = view.shape.back();
  auto* data = view.as<std::remove_const_t<T>>();
  return {data, 1, count, channels, channels, count * channels};
}

// A tensor 1, H, ..., C as an image: the axes between are its columns.
template <typename T>
Image<T> as_rows(const TensorView& view) {
  std::size_t columns = 1;
  for (std::size_t axis = 2; axis + 1 < view.rank(); ++axis) { columns *= view.shape[axis]; }
  const std::size_t channels = view.shape.back();
  auto* data = view.as<std::remove_const_t<T>>();
  return {data, view.shape[1], columns, channels, channels, columns * channels, view.rows};
}

}  // namespace arenite
