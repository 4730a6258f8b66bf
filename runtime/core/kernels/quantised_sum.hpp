// Sums of two quantised numbers, in integers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/quantised.hpp"

namespace arenite {

// The sum of two quantised numbers in integers: each is multiplied by a factor, and the sum shifted
// back; halves are rounded up.
struct QuantisedSum {
  std::int32_t bias;
  std::int32_t factors[2];
  int shift;
  std::int32_t zero_point;
  std::int32_t min;
  std::int32_t max;

  // Whether factors of 21 bits are good enough, and sums fit 32.
  static bool fits(float one, float other) {
    const float larger = std::max(one, other);
    return larger >= 0x1.0p-10f && larger < 0x1.0p+8f;
  }

  QuantisedSum(const Scale& one, const Scale& other, const Scale& target, bool subtracts) {
    const float ratios[2] = {one.scale / target.scale, other.scale / target.scale};
    shift = 20 - std::ilogb(std::max(ratios[0], ratios[1]));
    for (int i = 0; i < 2; ++i) {
      factors[i] = static_cast<std::int32_t>(std::lrint(std::ldexp(ratios[i], shift)));
    }
    factors[1] = subtracts ? -factors[1] : factors[1];
    bias = (1 << (shift - 1)) - factors[0] * one.zero_point - factors[1] * other.zero_point;
    zero_point = target.zero_point;
  }

  template <typename T>
  T of(T a, T b) const {
    const std::int32_t sum = bias + a * factors[0] + b * factors[1];
    return static_cast<T>(std::min(std::max((sum >> shift) + zero_point, min), max));
  }
};

// Adds `count` pairs of bytes of one type, each as `QuantisedSum::of` does. The target may be one
// of the sources.
using AddQuantised = void (*)(const QuantisedSum& sum, const void* one, const void* other,
                              void* target, std::size_t count);

// The implementation for this processor; null if there is none for these factors.
template <typename T>
AddQuantised find_quantised_add(const QuantisedSum& sum);

extern template AddQuantised find_quantised_add<std::int8_t>(const QuantisedSum& sum);
extern template AddQuantised find_quantised_add<std::uint8_t>(const QuantisedSum& sum);

}  // namespace arenite
