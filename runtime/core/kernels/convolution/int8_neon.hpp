// What kernels of 8-bit integers for 64-bit ARM share.
#pragma once

#include <arm_neon.h>

#include "kernels/convolution/int8_kernel.hpp"

namespace arenite {

#define ARENITE_FOR_DOT_PRODUCTS __attribute__((target("arch=armv8.2-a+dotprod")))

constexpr std::size_t kParts = kInt8Panel / 4;  // vectors of sums of a panel

// Instructions that stay in the order in which they are written. Compilers order for processors
// that look ahead, but a Cortex-A53 waits for each result that is not ready.
namespace ordered {

#define ARENITE_ORDERED(NAME, RESULT, A, B, TEXT)     \
  ARENITE_INLINE RESULT NAME(A a, B b) {              \
    RESULT made;                                      \
    asm volatile(TEXT : "=w"(made) : "w"(a), "w"(b)); \
    return made;                                      \
  }
ARENITE_ORDERED(multiply, float32x4_t, float32x4_t, float32x4_t, "fmul %0.4s, %1.4s, %2.4s")
ARENITE_ORDERED(add_floats, float32x4_t, float32x4_t, float32x4_t, "fadd %0.4s, %1.4s, %2.4s")
ARENITE_ORDERED(subtract, float32x4_t, float32x4_t, float32x4_t, "fsub %0.4s, %1.4s, %2.4s")
ARENITE_ORDERED(even_halves, int16x8_t, int32x4_t, int32x4_t, "uzp1 %0.8h, %1.8h, %2.8h")
ARENITE_ORDERED(add, int32x4_t, int32x4_t, int32x4_t, "add %0.4s, %1.4s, %2.4s")
ARENITE_ORDERED(add_and_saturate, int16x8_t, int16x8_t, int16x8_t, "sqadd %0.8h, %1.8h, %2.8h")
ARENITE_ORDERED(low_sums, int32x4_t, int16x8_t, int16x8_t, "saddl %0.4s, %1.4h, %2.4h")
ARENITE_ORDERED(high_sums, int32x4_t, int16x8_t, int16x8_t, "saddl2 %0.4s, %1.8h, %2.8h")
ARENITE_ORDERED(add_low_halves, int32x4_t, int32x4_t, int16x8_t, "saddw %0.4s, %1.4s, %2.4h")
ARENITE_ORDERED(add_high_halves, int32x4_t, int32x4_t, int16x8_t, "saddw2 %0.4s, %1.4s, %2.8h")
ARENITE_ORDERED(low_products, int16x8_t, int8x16_t, int8x16_t, "smull %0.8h, %1.8b, %2.8b")
ARENITE_ORDERED(high_products, int16x8_t, int8x16_t, int8x16_t, "smull2 %0.8h, %1.16b, %2.16b")
#undef ARENITE_ORDERED

#define ARENITE_ORDERED(NAME, TO, A, B, TEXT) \
  ARENITE_INLINE void NAME(TO& to, A a, B b) { asm volatile(TEXT : "+w"(to) : "w"(a), "w"(b)); }
ARENITE_ORDERED(add_low_products, int16x8_t, int8x16_t, int8x16_t, "smlal %0.8h, %1.8b, %2.8b")
ARENITE_ORDERED(add_high_products, int16x8_t, int8x16_t, int8x16_t, "smlal2 %0.8h, %1.16b, %2.16b")
#undef ARENITE_ORDERED

ARENITE_INLINE float32x4_t to_floats(int32x4_t a) {
  float32x4_t made;
  asm volatile("scvtf %0.4s, %1.4s" : "=w"(made) : "w"(a));
  return made;
}

ARENITE_INLINE int32x4_t nearest(float32x4_t a) {
  int32x4_t made;
  asm volatile("fcvtns %0.4s, %1.4s" : "=w"(made) : "w"(a));
  return made;
}

ARENITE_INLINE int16x8_t low_halves(int32x4_t a) {
  int16x8_t made;
  asm volatile("sqxtn %0.4h, %1.4s" : "=w"(made) : "w"(a));
  return made;
}

ARENITE_INLINE void append_halves(int16x8_t& to, int32x4_t a) {
  asm volatile("sqxtn2 %0.8h, %1.4s" : "+w"(to) : "w"(a));
}

template <int Lane>
ARENITE_INLINE int8x16_t all_of(int8x16_t a) {
  int8x16_t made;
  asm volatile("dup %0.4s, %1.s[%2]" : "=w"(made) : "w"(a), "i"(Lane));
  return made;
}

ARENITE_INLINE void add_neighbours(int32x4_t& to, int16x8_t a) {
  asm volatile("sadalp %0.4s, %1.8h" : "+w"(to) : "w"(a));
}

}  // namespace ordered

// Scaled sums become bytes as `requantise` makes them: integers that are out of bounds saturate on
// the way, and are clamped.
class Requantised {
 public:
  ARENITE_INLINE explicit Requantised(const QuantisedStore& store)
      : zero_(vdupq_n_s16(static_cast<std::int16_t>(store.zero_point))),
        min_(vdupq_n_s16(static_cast<std::int16_t>(store.min))),
        max_(vdupq_n_s16(static_cast<std::int16_t>(store.max))),
        is_any_int8_(store.min == -128 && store.max == 127) {}

  // Of 16 channels.
  template <Bounds Known, std::size_t Pixels>
  ARENITE_INLINE void make(int32x4_t (&sums)[Pixels][kParts], const float32x4_t (&scales)[kParts],
                           uint8x16_t (&bytes)[Pixels]) const {
    if (Known == Bounds::any && is_any_int8_) {
      make<Bounds::int8>(sums, scales, bytes);
      return;
    }
    std::size_t p = 0;
#pragma GCC unroll 5
    for (; p + 2 <= Pixels; p += 2) { make_some<Known, 2>(sums + p, scales, bytes + p); }
    if constexpr (Pixels % 2 == 1) { make_some<Known, 1>(sums + p, scales, bytes + p); }
  }

  bool is_any_int8() const { return is_any_int8_; }

  template <Bounds Known, std::size_t Pixels = 1>
  ARENITE_INLINE void make_some(const int32x4_t (*sums)[kParts],
                                const float32x4_t (&scales)[kParts], uint8x16_t* bytes) const {
    constexpr std::size_t kVectors = Pixels * kParts;
    // An integer plus kRounder has the bits of one plus the other: a float that needs no
    // conversion.
    constexpr bool kIsSmall = Known == Bounds::small_int8;
    const float32x4_t rounder = vdupq_n_f32(kRounder);
    float32x4_t scaled[kVectors];
#pragma GCC unroll 8
    for (std::size_t v = 0; v < kVectors; ++v) {
      const int32x4_t sum = sums[v / kParts][v % kParts];
      scaled[v] = kIsSmall ? ordered::subtract(vreinterpretq_f32_s32(sum), rounder)
                           : ordered::to_floats(sum);
    }
#pragma GCC unroll 8
    for (std::size_t v = 0; v < kVectors; ++v) {
      scaled[v] = ordered::multiply(scaled[v], scales[v % kParts]);
    }
    int32x4_t integers[kVectors];
#pragma GCC unroll 8
    for (std::size_t v = 0; v < kVectors; ++v) {
      integers[v] = kIsSmall ? vreinterpretq_s32_f32(ordered::add_floats(scaled[v], rounder))
                             : ordered::nearest(scaled[v]);
    }
    int16x8_t halves[kVectors / 2];
#pragma GCC unroll 4
    for (std::size_t v = 0; v < kVectors / 2; ++v) {
      halves[v] = kIsSmall ? ordered::even_halves(integers[2 * v], integers[2 * v + 1])
                           : ordered::low_halves(integers[2 * v]);
    }
    if constexpr (!kIsSmall) {
#pragma GCC unroll 4
      for (std::size_t v = 0; v < kVectors / 2; ++v) {
        ordered::append_halves(halves[v], integers[2 * v + 1]);
      }
    }
#pragma GCC unroll 4
    for (std::size_t v = 0; v < kVectors / 2; ++v) {
      halves[v] = ordered::add_and_saturate(halves[v], zero_);
    }
#pragma GCC unroll 2
    for (std::size_t p = 0; p < Pixels; ++p) {
      if constexpr (Known != Bounds::any) {
        const int8x8_t low = vqmovn_s16(halves[2 * p]);
        bytes[p] = vreinterpretq_u8_s8(vqmovn_high_s16(low, halves[2 * p + 1]));
      } else {
        bytes[p] = vuzp1q_u8(vreinterpretq_u8_s16(clamped(halves[2 * p])),
                             vreinterpretq_u8_s16(clamped(halves[2 * p + 1])));
      }
    }
  }

  // Of 8 channels, in the even bytes.
  ARENITE_INLINE uint8x16_t eight(const int32x4_t* sums, const float* scales) const {
    const int16x4_t low = vqmovn_s32(nearest(sums[0], scales));
    const int16x8_t all = vqmovn_high_s32(low, nearest(sums[1], scales + 4));
    return vreinterpretq_u8_s16(clamped(vqaddq_s16(all, zero_)));
  }

 private:
  ARENITE_INLINE int16x8_t clamped(int16x8_t values) const {
    return vminq_s16(vmaxq_s16(values, min_), max_);
  }

  ARENITE_INLINE static int32x4_t nearest(int32x4_t sums, const float* scales) {
    return vcvtnq_s32_f32(vmulq_f32(vcvtq_f32_s32(sums), vld1q_f32(scales)));
  }

  int16x8_t zero_;
  int16x8_t min_;
  int16x8_t max_;
  bool is_any_int8_;
};

// Loads what each channel of a panel has, where it stands, by pairs of vectors.
template <typename Element, typename Vector>
ARENITE_INLINE void load_panel(const Element* from, Vector (&to)[kParts]) {
  asm volatile(
      "ldp %q0, %q1, [%4]\n\t"
      "ldp %q2, %q3, [%4, #32]"
      : "=&w"(to[0]), "=&w"(to[1]), "=w"(to[2]), "=w"(to[3])
      : "r"(from)
      : "memory");
}

}  // namespace arenite
