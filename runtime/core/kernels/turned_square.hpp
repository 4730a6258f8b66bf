// Four rows of four elements of 32 bits, turned into columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace arenite {

constexpr std::size_t kSquare = 4;
typedef std::uint32_t SquareRow __attribute__((vector_size(16)));

struct Square {
  SquareRow rows[kSquare];
};

inline Square turned_square(const void* first, const void* second, const void* third,
                            const void* fourth) {
  const auto row = [](const void* source) {
    SquareRow value;
    std::memcpy(&value, source, sizeof value);
    return value;
  };
  const SquareRow a = row(first);
  const SquareRow b = row(second);
  const SquareRow c = row(third);
  const SquareRow d = row(fourth);
  const SquareRow low_ab = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  const SquareRow high_ab = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const SquareRow low_cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const SquareRow high_cd = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  return {{__builtin_shufflevector(low_ab, low_cd, 0, 1, 4, 5),
           __builtin_shufflevector(low_ab, low_cd, 2, 3, 6, 7),
           __builtin_shufflevector(high_ab, high_cd, 0, 1, 4, 5),
           __builtin_shufflevector(high_ab, high_cd, 2, 3, 6, 7)}};
}

// The rows begin `stride` bytes apart.
inline Square turned_square(const void* source, std::ptrdiff_t stride) {
  const auto* const first = static_cast<const std::byte*>(source);
  return turned_square(first, first + stride, first + 2 * stride, first + 3 * stride);
}

}  // namespace arenite
