// Functions of numbers within a few units of the last place, free of calls and branches, so that
// compilers compute many at once. NaN stays NaN.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace arenite {

// e^x as 2 * half * (1 + rest) with a small rest, so that e^x - 1 loses nothing either.
struct SplitExponential {
  static constexpr float kLowest = -86.5f;  // below it, powers of two have no room
  static constexpr float kHighest = 89.0f;  // e^x is infinite

  float half;
  float rest;

  explicit SplitExponential(float x) {
    constexpr float kRounder = 12'582'912.0f;  // leaves the nearest integer in the last bits
    constexpr float kLogOfTwoHigh = 0.693359375f;
    constexpr float kLogOfTwoLow = -2.12194440e-4f;
    const float bounded = std::min(std::max(x, kLowest), kHighest);
    const float shifted = bounded * 1.44269504f + kRounder;
    const float power = shifted - kRounder;
    const float r = (bounded - power * kLogOfTwoHigh) - power * kLogOfTwoLow;
    const float series =
        1 / 2.f + r * (1 / 6.f + r * (1 / 24.f + r * (1 / 120.f + r * (1 / 720.f + r * (1 / 5040.f)))));
    rest = r + r * r * series;
    std::uint32_t bits;
    std::memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 126) << 23;
    std::memcpy(&half, &bits, sizeof half);
  }
};

// e^x; 0 where it is below 3e-38.
inline float exponential(float x) {
  const SplitExponential split(x);
  const float made = (split.half * split.rest + split.half) * 2.0f;
  return x < SplitExponential::kLowest ? 0.0f : made;
}

// e^x - 1.
inline float exponential_less_one(float x) {
  const SplitExponential split(x);
  return (split.half * split.rest + (split.half - 0.5f)) * 2.0f;
}

inline float hyperbolic_tangent(float x) {
  const float e = exponential_less_one(2.0f * std::min(std::max(x, -10.0f), 10.0f));
  return e / (e + 2.0f);
}

// log(1 + x) for x in [0, 1]: twice the inverse hyperbolic tangent of x / (2 + x).
inline float logarithm_of_one_and(float x) {
  const float z = x / (2.0f + x);
  const float s = z * z;
  return z * (2.0f + s * (0.6666631f + s * (0.40025115f + s * (0.27957666f + s * 0.28191546f))));
}

// Polynomials fitted to erf(x) / x in x^2, and to log(1 - erf(x)).
inline float error_function(float x) {
  const float t = std::abs(x);
  const float s = std::min(t * t, 1.0f);
  const float near =
      x *
      (1.1283791f + s * (-0.37612626f +
                         s * (0.112835854f +
                              s * (-2.6853811e-2f +
                                   s * (5.1883277e-3f + s * (-8.010193e-4f + s * 7.85386e-5f))))));
  const float u = std::min(t, 4.0f);
  const float logarithm =
      -3.5372583e-4f +
      u * (-1.12704f + u * (-0.63822573f +
                            u * (-0.10303733f +
                                 u * (2.1805296e-2f + u * (-2.9396017e-3f + u * 1.8557339e-4f)))));
  const float far = std::copysign(1.0f - exponential(logarithm), x);
  return t > 1.0f ? far : near;
}

}  // namespace arenite
