#include "kernels/highway_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cache_rows.cpp"
#include "hwy/foreach_target.h"
// After them: compiled for each kind of processor.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/cache_rows.hpp"
#include "kernels/half.hpp"
#include "kernels/lanes.hpp"

HWY_BEFORE_NAMESPACE();
namespace arenite {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
ARENITE_LANE Lanes load_codes(const std::int8_t* from) {
  return Lanes{static_cast<float>(from[0]), static_cast<float>(from[1]),
               static_cast<float>(from[2]), static_cast<float>(from[3])};
}
#else
namespace hn = hwy::HWY_NAMESPACE;

ARENITE_LANE Lanes load_codes(const std::int8_t* from) {
  const hn::Rebind<std::int8_t, LaneTag> bytes;
  const hn::RebindToSigned<LaneTag> integers;
  return hn::ConvertTo(LaneTag(), hn::PromoteTo(integers, hn::LoadU(bytes, from)));
}
#endif

ARENITE_LANE void read_row(const std::byte* source, std::size_t width, float* target) {
  const auto* codes = reinterpret_cast<const std::int8_t*>(source);
  const std::byte* scales = source + width;
  for (std::size_t first = 0; first < width; first += kCacheBlock) {
    Half scale;
    std::memcpy(&scale, scales, sizeof scale);
    scales += sizeof scale;
    const float unit = widened(scale);
    if (first + kCacheBlock <= width) {
      const Lanes units = all_lanes(unit);
#pragma GCC unroll 8
      for (std::size_t i = first; i < first + kCacheBlock; i += kLanes) {
        store(multiply(units, load_codes(codes + i)), target + i);
      }
    } else {
      for (std::size_t i = first; i < width; ++i) {
        target[i] = unit * static_cast<float>(codes[i]);
      }
    }
  }
}

void read_rows(const std::byte* source, std::size_t stride, std::size_t count, std::size_t width,
               float* target) {
  for (std::size_t row = 0; row < count; ++row) {
    read_row(source + row * stride, width, target + row * width);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace arenite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

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
  float zeros[kLanes] = {};  // unless an element is no number, or infinite
  for (std::size_t first = 0; first < kCacheBlock; first += kLanes) {
    for (std::size_t i = 0; i < kLanes; ++i) {
      const float size = std::abs(block[first + i]);
      lanes[i] = size > lanes[i] ? size : lanes[i];
      zeros[i] += 0.0f * size;
    }
  }
  float largest = *std::max_element(lanes, lanes + kLanes);
  for (const float zero : zeros) { largest += zero; }
  scale = narrowed(largest / kMost);
  if (widened(scale) * kMost < largest) { ++scale.bits; }  // rounded up, so that all of them fit
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
  static const auto read = ARENITE_COPY(read_rows);
  read(source, stride, count, width, target);
}

}  // namespace arenite

#endif  // HWY_ONCE
