// Functions that are exact to a few units in the last place, without calls and branches, so that
// compilers vectorise them. NaN stays NaN.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace arenite {

// Bounds whose values are hidden from the compiler. If it knows them, it computes the result of
// each bound separately and selects by masks, which takes twice as long.
struct Bounds {
  float zero;
  float one;
  float lowest_power;  // of what exponential_within takes
  float highest_power;
  float lowest;     // below it, powers of two have no room
  float highest;    // e^x is infinite
  float error_end;  // erf is 1 from there on
  float ten;
  float lowest_less_one;  // e^x - 1 is -1 below it
  float closed_gate;      // the sigmoid of -x for a gate that is closed
};
extern const Bounds kBounds;

// The lesser and the greater number; where one is NaN, either may be the result. On ARM64 GCC takes
// one instruction for these, and seven to keep NaN as std::min and std::max do.
#ifdef __aarch64__
inline float lesser(float a, float b) { return std::fmin(a, b); }
inline float greater(float a, float b) { return std::fmax(a, b); }
#else
inline float lesser(float a, float b) { return std::min(a, b); }
inline float greater(float a, float b) { return std::max(a, b); }
#endif

// The nearest number of [low, high]; NaN stays NaN.
inline float bounded(float x, float low, float high) {
#ifdef __aarch64__
  return x != x ? x : lesser(greater(x, low), high);
#else
  return std::min(std::max(x, low), high);
#endif
}

// e^x for x in [-87, 88.3], in fewer instructions: a polynomial fitted to it about each multiple of
// log(2).
inline float exponential_within(float x) {
  // Leaves the nearest integer and a float's bias of exponents in the last bits.
  constexpr float kRounder = 12'582'912.0f + 127.0f;
  const float shifted = x * 1.44269504f + kRounder;
  const float power = shifted - kRounder;
  const float r = (x - power * 0.693359375f) + power * 2.12194440e-4f;
  const float series =
      0.9999997f + r * (0.49999148f + r * (0.16667639f + r * (0.041898161f + r * 0.0082902713f)));
  std::uint32_t bits;
  std::memcpy(&bits, &shifted, sizeof bits);
  bits <<= 23;
  float scale;
  std::memcpy(&scale, &bits, sizeof scale);
  return (scale * r) * series + scale;
}

// The same of any x up to 88, above all of those up to 0; 0 where it is below 1e-37.
inline float exponential_below(float x) {
  const float made = exponential_within(x);
  return x < -86.5f ? 0.0f : made;
}

// e^x - 1 of x up to 88, above all of those up to 0. Near 0 it loses nothing.
inline float exponential_less_one_below(float x) {
  constexpr float kRounder = 12'582'912.0f + 127.0f;
  const float above = std::max(x, kBounds.lowest_less_one);
  const float shifted = above * 1.44269504f + kRounder;
  const float power = shifted - kRounder;
  const float r = (above - power * 0.693359375f) + power * 2.12194440e-4f;
  const float series =
      1.0f + r * (0.49999997f +
                  r * (0.16666506f + r * (0.041667137f + r * (0.0083691040f + r * 0.0013888872f))));
  std::uint32_t bits;
  std::memcpy(&bits, &shifted, sizeof bits);
  bits <<= 23;
  float scale;
  std::memcpy(&scale, &bits, sizeof scale);
  return (scale * r) * series + (scale - 1.0f);
}

// e^x as 2 * half * (1 + rest) with a small rest, so that e^x - 1 loses nothing either.
struct SplitExponential {
  static constexpr float kLowest = -86.5f;

  float half;
  float rest;

  explicit SplitExponential(float x) {
    constexpr float kRounder = 12'582'912.0f;  // leaves the nearest integer in the last bits
    constexpr float kLogOfTwoHigh = 0.693359375f;
    constexpr float kLogOfTwoLow = -2.12194440e-4f;
    const float inside = bounded(x, kBounds.lowest, kBounds.highest);
    const float shifted = inside * 1.44269504f + kRounder;
    const float power = shifted - kRounder;
    const float r = (inside - power * kLogOfTwoHigh) - power * kLogOfTwoLow;
    const float series =
        1 / 2.f +
        r * (1 / 6.f + r * (1 / 24.f + r * (1 / 120.f + r * (1 / 720.f + r * (1 / 5040.f)))));
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
  const float e = exponential_less_one(2.0f * bounded(x, -kBounds.ten, kBounds.ten));
  return e / (e + 2.0f);
}

// log(1 + x) for x in [0, 1]: twice the inverse hyperbolic tangent of x / (2 + x).
inline float logarithm_of_one_and(float x) {
  const float z = x / (2.0f + x);
  const float s = z * z;
  return z * (2.0f + s * (0.6666631f + s * (0.40025115f + s * (0.27957666f + s * 0.28191546f))));
}

// Powers of u^2 of a polynomial in u, which goes from -1 to 1 as x^2 does to the bound, so that
// terms stay small; and what is multiplied by u. It is fitted to erf(x) / x.
constexpr float kErrorEven[] = {0.380216777f,  0.140215069f,   0.0907588601f, 0.0518417358f,
                                0.0263133906f, 0.00492836721f, 0.00436914945f};
constexpr float kErrorOdd[] = {-0.189547315f,  -0.112403885f,   -0.0707694739f, -0.0370498598f,
                               -0.0144041618f, -0.00396299968f, -0.00159794092f};
constexpr float kErrorScale = 0.144622549f;  // u is x^2 times it, less 1

// From the bound on it is 1. Of NaN it is any number.
inline float error_function_of_number(float x) {
  const float t = lesser(std::abs(x), kBounds.error_end);
  const float u = t * t * kErrorScale - 1.0f;
  const float v = u * u;
  const auto series = [v](const float (&c)[7]) {
    return c[0] + v * (c[1] + v * (c[2] + v * (c[3] + v * (c[4] + v * (c[5] + v * c[6])))));
  };
  const float even = series(kErrorEven);
  const float odd = series(kErrorOdd);
  return std::copysign(lesser(t * (even + u * odd), kBounds.one), x);
}

inline float error_function(float x) { return x != x ? x : error_function_of_number(x); }

}  // namespace arenite
