// 16-bit floats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace arenite {

// A 16-bit float of IEEE 754.
struct Half {
  std::uint16_t bits;
};

// The upper half of a 32-bit float.
struct BFloat {
  std::uint16_t bits;
};

// Widening and narrowing have no branches, so that loops of them become vectors.

inline float widened(Half half) {
  const std::uint32_t magnitude = half.bits & 0x7fffu;
  const std::uint32_t shifted = magnitude << 13;
  float scaled;
  std::memcpy(&scaled, &shifted, sizeof scaled);
  scaled *= 0x1p112f;  // the difference of the exponents; subnormal numbers become normal
  std::uint32_t bits;
  std::memcpy(&bits, &scaled, sizeof bits);
  bits = magnitude >= 0x7c00u ? shifted | 0x7f800000u : bits;
  bits |= static_cast<std::uint32_t>(half.bits & 0x8000u) << 16;
  float result;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}

// Rounds to the nearest number, halves to the even one.
inline Half narrowed(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const std::uint32_t sign = bits >> 16 & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  // Rounding carries over into the exponent, as it should, up to infinity.
  const std::uint32_t normal = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
  float small;
  std::memcpy(&small, &magnitude, sizeof small);
  small += 0.5f;  // rounds to units of 2^-24
  std::uint32_t subnormal;
  std::memcpy(&subnormal, &small, sizeof subnormal);
  subnormal -= 0x3f000000u;
  const std::uint32_t large = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
  const std::uint32_t made = magnitude < 0x38800000u    ? subnormal
                             : magnitude >= 0x47800000u ? large
                                                        : normal;
  return {static_cast<std::uint16_t>(sign | made)};
}

inline float widened(BFloat value) {
  const std::uint32_t bits = static_cast<std::uint32_t>(value.bits) << 16;
  float result;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}

// The same of many numbers, by the instructions of the processor.
void widen(const Half* source, float* target, std::size_t count);
void widen(const BFloat* source, float* target, std::size_t count);
void narrow(const float* source, Half* target, std::size_t count);

// Converts rows of `width` numbers, `stride` apart, to rows that follow one another.
void widen_rows(const Half* source, std::size_t stride, std::size_t rows, std::size_t width,
                float* target);

}  // namespace arenite
