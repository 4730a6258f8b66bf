// Images as kernels see them: row by row, wherever the rows lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace arenite {

// One image, channels last, whose rows follow one another or lie anywhere.
//
// A kernel finds a row once and then goes along it; none of them computes with `row_stride` unless
// there are no offsets.
template <typename T>
struct Image {
  T* data;
  std::size_t rows;
  std::size_t columns;
  std::size_t channels;
  std::size_t pixel_stride;  // elements
  std::size_t row_stride;    // elements; of no meaning where there are offsets
  const std::uint64_t* row_offsets =
      nullptr;  // bytes from data to each row; null: row_stride apart

  T* row(std::size_t index) const {
    if (row_offsets == nullptr) {
      return data + index * row_stride;
    }
    using Byte = std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
    const auto offset = static_cast<std::size_t>(row_offsets[index]);
    return reinterpret_cast<T*>(reinterpret_cast<Byte*>(data) + offset);
  }
};

struct RowRange {
  std::size_t first;
  std::size_t count;
};

}  // namespace arenite
