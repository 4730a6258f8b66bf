// Fixed-point arithmetic that rounds like TensorFlow Lite's integer kernels, so that results agree
// to the bit.
//
// Numbers of 16 bits have m bits before the point: raw / 2^(15 - m). Sources: the published
// arithmetic of gemmlowp's fixedpoint.h and of TensorFlow Lite's quantized multipliers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/wrapping.hpp"

namespace arenite {

// x / 2^exponent, to the nearest; halves away from zero. The exponent is 0 to 31.
template <typename T>
constexpr T divide_by_power(T x, int exponent) {
  const auto mask = static_cast<T>((std::int64_t{1} << exponent) - 1);
  const auto rest = static_cast<T>(x & mask);
  const auto half = static_cast<T>((mask >> 1) + (x < 0 ? 1 : 0));
  return static_cast<T>((x >> exponent) + (rest > half ? 1 : 0));
}

inline std::int16_t saturate16(std::int32_t x) {
  return static_cast<std::int16_t>(std::clamp<std::int32_t>(x, -32768, 32767));
}

// A positive number as factor / 2^31 * 2^shift, the factor at least 2^30; 0 for very small ones.
struct Multiplier {
  std::int32_t factor = 0;
  int shift = 0;

  static constexpr int kMaxShift = 30;

  // Not `fits` where the number is none, or too large.
  static Multiplier of(double number) {
    Multiplier result;
    if (!(number > 0) || !std::isfinite(number)) {
      result.shift = kMaxShift + 1;
      return result;
    }
    auto factor = std::llround(std::ldexp(std::frexp(number, &result.shift), 31));
    if (factor == (1ll << 31)) {
      factor /= 2;
      ++result.shift;
    }
    if (result.shift < -31) { return {}; }
    result.factor = static_cast<std::int32_t>(factor);
    return result;
  }

  bool fits() const { return shift <= kMaxShift; }

  std::int32_t times(std::int32_t x) const {
    const auto shifted = product(x, std::int32_t{1} << std::max(shift, 0));
    const std::int64_t wide = std::int64_t{shifted} * factor;
    const std::int64_t nudge = wide >= 0 ? (1ll << 30) : 1 - (1ll << 30);
    const auto high = static_cast<std::int32_t>((wide + nudge) / (1ll << 31));
    return divide_by_power(high, std::max(-shift, 0));
  }

  // Of a sum of 64 bits, by 15 bits of the factor; halves are rounded up. The shift is below 8.
  std::int32_t times_wide(std::int64_t x) const {
    const std::int32_t most = factor < 0x7fff0000 ? (factor + (1 << 15)) >> 16 : 0x7fff;
    const int total = 15 - shift;
    const std::int64_t wide = product(x, std::int64_t{most});
    return static_cast<std::int32_t>(sum(wide, std::int64_t{1} << (total - 1)) >> total);
  }
};

// Functions of numbers of 16 bits. Sums wrap around where they do not fit.
namespace fixed16 {

constexpr std::int16_t kOne = 32767;  // nearly, with no bits before the point

// A constant of 32 bits in 16.
constexpr std::int16_t constant(std::int32_t value) {
  return static_cast<std::int16_t>(divide_by_power(value, 16));
}

inline std::int16_t times(std::int16_t a, std::int16_t b) {
  if (a == -32768 && b == -32768) { return kOne; }
  const std::int32_t wide = std::int32_t{a} * b;
  return static_cast<std::int16_t>((wide + (wide >= 0 ? 1 << 14 : 1 - (1 << 14))) / (1 << 15));
}

inline std::int16_t shift_left(std::int16_t x, int count) {
  const std::int32_t most = (1 << (15 - count)) - 1;
  return x > most    ? std::int16_t{32767}
         : x < -most ? std::int16_t{-32768}
                     : static_cast<std::int16_t>(x * (1 << count));
}

inline std::int16_t add(std::int16_t a, std::int16_t b) {
  return static_cast<std::int16_t>(std::int32_t{a} + b);
}

inline std::int16_t subtract(std::int16_t a, std::int16_t b) {
  return static_cast<std::int16_t>(std::int32_t{a} - b);
}

// exp(x) for x in [-1/4, 0): Taylor's series about -1/8.
inline std::int16_t exp_of_quarter(std::int16_t a) {
  constexpr std::int16_t kAtEighth = constant(1895147668);  // exp(-1/8)
  constexpr std::int16_t kThird = constant(715827883);
  const std::int16_t x = add(a, 1 << 12);
  const std::int16_t square = times(x, x);
  const std::int16_t cube = times(square, x);
  const std::int16_t fourth = times(square, square);
  const std::int16_t higher =
      divide_by_power(add(times(add(divide_by_power(fourth, 2), cube), kThird), square), 1);
  return saturate16(std::int32_t{kAtEighth} + times(kAtEighth, add(x, higher)));
}

// exp(a) for a <= 0 with so many bits before the point; none before that of the result.
inline std::int16_t exp_of_negative(std::int16_t a, int bits) {
  // exp(-2^e) for e from -2.
  constexpr std::int16_t kFactors[] = {
      constant(1672461947), constant(1302514674), constant(790015084), constant(290630308),
      constant(39332535),   constant(720401),     constant(242)};
  if (a == 0) { return kOne; }
  if (bits > 5 && a < -(1 << (20 - bits))) {
    return 0;  // below -32
  }
  const auto quarter = static_cast<std::int16_t>(1 << (13 - bits));
  const auto part = subtract(static_cast<std::int16_t>(a & (quarter - 1)), quarter);
  const std::int16_t rest = subtract(part, a);
  std::int16_t result = exp_of_quarter(shift_left(part, bits));
  for (int e = -2; e <= 4 && e < bits; ++e) {
    if (rest & (1 << (15 - bits + e))) { result = times(result, kFactors[e + 2]); }
  }
  return result;
}

// 2 / (1 + a) for a in (0, 1), with 2 bits before the point: Newton and Raphson's division.
inline std::int16_t two_over_one_plus(std::int16_t a) {
  constexpr std::int16_t kFirst = constant(1515870810);    // 48 / 17
  constexpr std::int16_t kSecond = constant(-1010580540);  // -32 / 17
  constexpr std::int16_t kUnit = 1 << 13;
  const std::int32_t doubled = std::int32_t{a} + kOne;
  const auto half = static_cast<std::int16_t>((doubled + (doubled >= 0 ? 1 : -1)) / 2);
  std::int16_t x = add(kFirst, times(half, kSecond));
  for (int i = 0; i < 3; ++i) {
    x = add(x, shift_left(times(x, subtract(kUnit, times(half, x))), 2));
  }
  return x;
}

// Both read numbers with so many bits before the point, and make numbers with none.
inline std::int16_t logistic(std::int16_t a, int bits) {
  if (a == 0) { return 1 << 14; }
  const std::int16_t below = a > 0 ? subtract(0, a) : a;
  const std::int16_t result = shift_left(two_over_one_plus(exp_of_negative(below, bits)), 1);
  return a > 0 ? result : subtract(kOne, result);
}

inline std::int16_t tanh(std::int16_t a, int bits) {
  if (a == 0) { return 0; }
  const std::int16_t below = a > 0 ? subtract(0, a) : a;
  // (1 - y) / (1 + y) of y = exp(-2 |a|); twice a number is that with one bit more before the
  // point.
  const std::int16_t quotient = two_over_one_plus(exp_of_negative(below, bits + 1));
  const std::int16_t result = shift_left(subtract(quotient, 1 << 13), 2);
  return a > 0 ? result : subtract(0, result);
}

}  // namespace fixed16

}  // namespace arenite
