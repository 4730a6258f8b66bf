// Rows of a cache of 8 bits: integers in blocks, each block with a scale.
#pragma once

#include <cstddef>

namespace arenite {

constexpr std::size_t kCacheBlock = 32;  // elements

// Bytes of a row: its integers, then the scales of its blocks, 16-bit floats.
constexpr std::size_t cache_row_bytes(std::size_t width) {
  return width + 2 * ((width + kCacheBlock - 1) / kCacheBlock);
}

// Rounds `count` rows of `width` floats that follow one another. The element of a block that is
// furthest from 0 becomes 127 or -127, or less if its scale is subnormal. Blocks with an element
// that is no number, or infinite, or beyond 8.3 million, are not numbers.
void write_cache_rows(const float* source, std::size_t count, std::size_t width, std::byte* target);

// Writes the floats of rows that begin `stride` bytes apart one behind the other.
void read_cache_rows(const std::byte* source, std::size_t stride, std::size_t count,
                     std::size_t width, float* target);

}  // namespace arenite
