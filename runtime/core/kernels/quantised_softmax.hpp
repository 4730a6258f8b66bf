// Softmax of quantised numbers, or its logarithm, the same to the bit on every processor.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/quantised.hpp"
#include "kernels/sums.hpp"

namespace arenite {

template <typename T>
ARENITE_INLINE T largest(const T* source, std::size_t count) {
  return fold(
      count, source[0], [=](std::size_t i) { return source[i]; },
      [](T a, T b) { return a > b ? a : b; });
}

// Powers of numbers that are so many steps below the largest.
class QuantisedPowers {
 public:
  QuantisedPowers() = default;

  // Of numbers `scale` apart, times beta.
  QuantisedPowers(float scale, float beta) : scale_(scale), beta_(beta) {
    for (std::int32_t i = 0; i < kBytes; ++i) {
      powers_[i] = static_cast<float>(std::exp(static_cast<double>(exponent(i))));
    }
  }

  ARENITE_INLINE float exponent(std::int32_t steps) const {
    return -(beta_ * (scale_ * static_cast<float>(steps)));
  }
  ARENITE_INLINE float power(std::int32_t steps) const { return powers_[steps]; }

 private:
  static constexpr std::int32_t kBytes = 256;

  float scale_ = 0.0f;
  float beta_ = 0.0f;
  float powers_[kBytes] = {};
};

// Writes the softmax of `count` bytes, at least one. The target may be the source.
template <typename T>
ARENITE_INLINE void softmax_of_quantised(const QuantisedPowers& powers, const Scale& out,
                                         bool is_log, const T* source, T* target,
                                         std::size_t count) {
  const std::int32_t top = largest(source, count);
  const auto power = [&](std::size_t i) { return powers.power(top - source[i]); };
  const float sum = sum_of(count, power);
  const float logarithm = std::log(sum);
  for (std::size_t i = 0; i < count; ++i) {
    target[i] =
        out.quantise<T>(is_log ? powers.exponent(top - source[i]) - logarithm : power(i) / sum);
  }
}

}  // namespace arenite
