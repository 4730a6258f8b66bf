#include "kernels/dynamic_quantise.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/parallel.hpp"
#include "kernels/processor.hpp"
#include "kernels/requantise.hpp"

namespace arenite {

namespace {

constexpr std::size_t kMostParts = 64;  // that have a range of their own

struct Range {
  float low;
  float high;
};

// The range of some elements and 0.
ARENITE_INLINE Range range_of(const float* from, std::size_t count) {
  constexpr std::size_t kLanes = 64;  // several vectors, so that none waits for the one before
  float low[kLanes] = {};
  float high[kLanes] = {};
  std::size_t done = 0;
  for (; done + kLanes <= count; done += kLanes) {
#pragma GCC unroll 1
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const float x = from[done + lane];
      low[lane] = x < low[lane] ? x : low[lane];
      high[lane] = x > high[lane] ? x : high[lane];
    }
  }
  for (std::size_t lane = 0; done < count; ++done, ++lane) {
    low[lane] = std::min(low[lane], from[done]);
    high[lane] = std::max(high[lane], from[done]);
  }
  return {*std::min_element(low, low + kLanes), *std::max_element(high, high + kLanes)};
}

Range found_range(const float* from, std::size_t count, pthreadpool_t threads) {
  std::array<Range, kMostParts> ranges{};
  const std::size_t part = divide_up(std::max<std::size_t>(count, 1), kMostParts);
  const std::size_t num_parts = threads == nullptr ? 1 : divide_up(count, part);
  const std::size_t size = threads == nullptr ? count : part;
  parallel(threads, num_parts, size * sizeof(float),
           [&, size](std::size_t first, std::size_t parts) {
             for (std::size_t i = first; i < first + parts; ++i) {
               const std::size_t start = i * size;
               with_widest_vectors([=, range = &ranges[i]] {
                 *range = range_of(from + start, std::min(size, count - start));
               });
             }
           });
  Range whole = ranges[0];
  for (const Range& each : ranges) {
    whole = {std::min(whole.low, each.low), std::max(whole.high, each.high)};
  }
  return whole;
}

}  // namespace

DynamicScale quantise_dynamically(const float* from, std::size_t count, std::uint8_t* to,
                                  pthreadpool_t threads) {
  const Range range = found_range(from, count, threads);
  const float scale = range.high == range.low ? 1.0f : (range.high - range.low) / 255.0f;
  const float zero = std::min(std::max(-range.low / scale, 0.0f), 255.0f);
  const auto zero_point = static_cast<std::uint8_t>(std::nearbyint(zero));
  parallel(threads, count, 2 * sizeof(float), [=](std::size_t first, std::size_t some) {
    with_widest_vectors([=] {
      const Rounding<std::uint8_t> rounding(0, 255, zero_point);
      const float* __restrict source = from + first;
      std::uint8_t* __restrict target = to + first;
      for (std::size_t i = 0; i < some; ++i) { target[i] = rounding(source[i] / scale); }
    });
  });
  return {scale, zero_point};
}

}  // namespace arenite
