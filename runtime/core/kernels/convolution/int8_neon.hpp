// What kernels of 8-bit integers for 64-bit ARM share.
#pragma once

#include <arm_neon.h>

#include "kernels/convolution/int8_kernel.hpp"

namespace arenite {

#define ARENITE_FOR_DOT_PRODUCTS __attribute__((target("arch=armv8.2-a+dotprod")))

constexpr std::size_t kParts = kInt8Panel / 4;  // vectors of sums of a panel

// Scaled sums become bytes as `requantise` makes them: integers that are out of bounds saturate on
// the way, and are clamped.
class Requantised {
 public:
  ARENITE_INLINE explicit Requantised(const QuantisedStore& store)
      : zero_(vdupq_n_s16(static_cast<std::int16_t>(store.zero_point))),
        min_(vdupq_n_s16(static_cast<std::int16_t>(store.min))),
        max_(vdupq_n_s16(static_cast<std::int16_t>(store.max))) {}

  ARENITE_INLINE uint8x16_t sixteen(const int32x4_t* sums, const float* scales) const {
    return vuzp1q_u8(eight(sums, scales), eight(sums + 2, scales + 8));
  }

  // In the even bytes.
  ARENITE_INLINE uint8x16_t eight(const int32x4_t* sums, const float* scales) const {
    const int16x4_t low = vqmovn_s32(nearest(sums[0], scales));
    const int16x8_t all = vqmovn_high_s32(low, nearest(sums[1], scales + 4));
    return vreinterpretq_u8_s16(vminq_s16(vmaxq_s16(vqaddq_s16(all, zero_), min_), max_));
  }

 private:
  ARENITE_INLINE static int32x4_t nearest(int32x4_t sums, const float* scales) {
    return vcvtnq_s32_f32(vmulq_f32(vcvtq_f32_s32(sums), vld1q_f32(scales)));
  }

  int16x8_t zero_;
  int16x8_t min_;
  int16x8_t max_;
};

}  // namespace arenite
