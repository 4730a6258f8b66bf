// Images whose rows may lie anywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace arenite {

// One image, channels last, whose rows follow one another or lie anywhere.
//
// Kernels ask for each row once; they use `row_stride` only if there are no
// offsets.
template <typename T>
struct Image {
  T* data;
  std::size_t rows;
  std::size_t columns;
  std::size_t channels;
  std::size_t pixel_stride;  // elements
  std::size_t row_stride;    // elements; unused if there are offsets
  const std::uint64_t* row_offsets =
      nullptr;  // bytes from data to each row; null: row_stride apart

  T* row(std::size_t index) const {
    if (row_offsets == nullptr) { return data + index * row_stride; }
    using Byte = std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
    const auto offset = static_cast<std::size_t>(row_offsets[index]);
    return reinterpret_cast<T*>(reinterpret_cast<Byte*>(data) + offset);
  }
};

// The same image as bytes, of elements of one byte.
template <typename T>
auto as_bytes(const Image<T>& image) {
  static_assert(sizeof(T) == 1);
  using Byte = std::conditional_t<std::is_const_v<T>, const std::uint8_t, std::uint8_t>;
  return Image<Byte>{reinterpret_cast<Byte*>(image.data),
                     image.rows,
                     image.columns,
                     image.channels,
                     image.pixel_stride,
                     image.row_stride,
                     image.row_offsets};
}

struct RowRange {
  std::size_t first;
  std::size_t count;
};

}  // namespace arenite
