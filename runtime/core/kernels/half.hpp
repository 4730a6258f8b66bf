// 16-bit floats.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

namespace arenite {

// A 16-bit float of IEEE 754.
struct Half {
  std::uint16_t bits;
};

inline float widened(Half half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half.bits & 0x8000u) << 16;
  const std::uint32_t exponent = half.bits >> 10 & 0x1fu;
  const std::uint32_t fraction = half.bits & 0x3ffu;
  if (exponent == 0) {
    const float magnitude = std::ldexp(static_cast<float>(fraction), -24);
    return sign != 0 ? -magnitude : magnitude;
  }
  const std::uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  const std::uint32_t bits = sign | wide << 23 | fraction << 13;
  float result;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}

}  // namespace arenite
