#include "cache_rows.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/half.hpp"
#include "kernels/processor.hpp"

namespace arenite {

namespace {

constexpr float kMost = 127.0f;
// Added to a number below 2^22 and taken away again it leaves the nearest integer, of two that are
// as near the even one.
constexpr float kRounding = 0x1.8p23f;

// Rounds a block. Loops have one length and no branches, so that they become vectors.
ARENITE_INLINE void round_block(const float (&block)[kCacheBlock],
                                std::int8_t (&codes)[kCacheBlock], Half& scale) {
  constexpr std::size_t kLanes = 16;
  float lanes[kLanes] = {};
  for (std::size_t first = 0; first < kCacheBlock; first += kLanes) {
    for (std::size_t i = 0; i < kLanes; ++i) {
      const float size = std::abs(block[first + i]);
      lanes[i] = size > lanes[i] ? size : lanes[i];
    }
  }
  scale = narrowed(*std::max_element(lanes, lanes + kLanes) / kMost);
  const float unit = widened(scale);
  const float factor = unit > 0.0f ? 1.0f / unit : 0.0f;
  for (std::size_t i = 0; i < kCacheBlock; ++i) {
    float scaled = block[i] * factor;
    scaled = scaled > -kMost ? scaled : -kMost;
    scaled = scaled < kMost ? scaled : kMost;
    codes[i] = static_cast<std::int8_t>(static_cast<std::int32_t>(scaled + kRounding - kRounding));
  }
}

ARENITE_INLINE void write_row(const float* row, std::size_t width, std::byte* target) {
  std::byte* scales = target + width;
  for (std::size_t first = 0; first < width; first += kCacheBlock) {
    const std::size_t count = std::min(kCacheBlock, width - first);
    float block[kCacheBlock] = {};
    std::int8_t codes[kCacheBlock];
    Half scale;
    std::memcpy(block, row + first, count * sizeof *block);
    round_block(block, codes, scale);
    std::memcpy(target + first, codes, count);
    std::memcpy(scales, &scale, sizeof scale);
    scales += sizeof scale;
  }
}

ARENITE_INLINE void read_row(const std::byte* source, std::size_t width, float* target) {
  const auto* codes = reinterpret_cast<const std::int8_t*>(source);
  const std::byte* scales = source + width;
  for (std::size_t first = 0; first < width; first += kCacheBlock) {
    Half scale;
    std::memcpy(&scale, scales, sizeof scale);
    scales += sizeof scale;
    const float unit = widened(scale);
    float* const to = target + first;
    if (first + kCacheBlock <= width) {
      for (std::size_t i = 0; i < kCacheBlock; ++i) { to[i] = unit * codes[first + i]; }
    } else {
      for (std::size_t i = 0; i < width - first; ++i) { to[i] = unit * codes[first + i]; }
    }
  }
}

}  // namespace

void write_cache_rows(const float* source, std::size_t count, std::size_t width,
                      std::byte* target) {
  with_widest_vectors([=] {
    for (std::size_t row = 0; row < count; ++row) {
      write_row(source + row * width, width, target + row * cache_row_bytes(width));
    }
  });
}

void read_cache_rows(const std::byte* source, std::size_t stride, std::size_t count,
                     std::size_t width, float* target) {
  with_widest_vectors([=] {
    for (std::size_t row = 0; row < count; ++row) {
      read_row(source + row * stride, width, target + row * width);
    }
  });
}

}  // namespace arenite
