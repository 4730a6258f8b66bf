// Numbers made 8-bit integers, the same on every processor.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/processor.hpp"

namespace arenite {

// Adding and subtracting this rounds a float to the nearest integer, halves to the even one; unlike
// std::nearbyint, compilers do it for vectors.
constexpr float kRounder = 12'582'912.0f;

// Rounds to the nearest integer, clamps to [min, max] and adds the zero point.
template <typename T>
struct Rounding {
  Rounding(std::int32_t min, std::int32_t max, std::int32_t zero)
      : low(static_cast<float>(min - zero)),
        high(static_cast<float>(max - zero)),
        zero_point(zero) {}

  // The clamp between a product and a sum prevents a fused multiply-add. NaN becomes the lowest.
  ARENITE_INLINE T operator()(float value) const {
    const float kept = std::min(std::max(low, value), high);
    return static_cast<T>(static_cast<std::int32_t>((kept + kRounder) - kRounder) + zero_point);
  }

  float low;
  float high;
  std::int32_t zero_point;
};

// How a sum of products becomes a result: scaled as a float and rounded, as ONNX Runtime
// does.
struct QuantisedStore {
  const std::int32_t* bias;  // by output channel; null: none
  const float* scales;       // by output channel: source scale * filter scale / result scale
  std::int32_t zero_point;   // of the result
  std::int32_t min;          // bounds of the result, within its type
  std::int32_t max;
};

// Writes sums of channels side by side, whose scales are given. Inline, so that it is compiled for
// the instructions of its caller.
ARENITE_INLINE void requantise(const QuantisedStore& store, const float* scales,
                               const std::int32_t* sums, std::size_t count, std::uint8_t* to) {
  const Rounding<std::uint8_t> rounding(store.min, store.max, store.zero_point);
  for (std::size_t i = 0; i < count; ++i) {
    to[i] = rounding(static_cast<float>(sums[i]) * scales[i]);
  }
}

}  // namespace arenite
