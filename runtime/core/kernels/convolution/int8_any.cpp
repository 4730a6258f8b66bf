// Convolutions of 8-bit integers for 32-bit ARM, and for processors without kernels of their own.
#include "kernels/processor.hpp"

#if !defined(ARENITE_X86) && !defined(ARENITE_ARM64)

#include <type_traits>

#include "kernels/convolution/int8_kernel.hpp"

#if defined(__ARM_NEON)
#include <arm_neon.h>
#endif

namespace arenite {

namespace {

#if defined(__ARM_NEON)
using Byte = std::int8_t;

// The products of a quad have 16 bits, and are added in pairs: two sums of each channel. Compilers
// copy registers between these instructions.
ARENITE_INLINE void add_products(const Int8Tile& tile, std::size_t pixel,
                                 std::int32_t (&sums)[kInt8Panel]) {
  int32x4_t pairs[8] = {};
  const std::int8_t* weights = tile.weights;
  for (std::size_t run = 0; run < tile.num_runs; ++run) {
    const std::uint8_t* from = tile.runs[run] + pixel * tile.step;
    std::size_t quads = tile.quads;
    __asm__ volatile(
        "1:\n"
        "vld1.32 {d14[]}, [%[from]]!\n"
        "vld1.8 {d0-d3}, [%[weights]]!\n"
        "vld1.8 {d4-d7}, [%[weights]]!\n"
        "vmull.s8 q4, d0, d14\n"
        "vmull.s8 q5, d1, d14\n"
        "vmull.s8 q6, d2, d14\n"
        "vpadal.s16 %q[a], q4\n"
        "vmull.s8 q4, d3, d14\n"
        "vpadal.s16 %q[b], q5\n"
        "vmull.s8 q5, d4, d14\n"
        "vpadal.s16 %q[c], q6\n"
        "vmull.s8 q6, d5, d14\n"
        "vpadal.s16 %q[d], q4\n"
        "vmull.s8 q4, d6, d14\n"
        "vpadal.s16 %q[e], q5\n"
        "vmull.s8 q5, d7, d14\n"
        "subs %[quads], #1\n"
        "vpadal.s16 %q[f], q6\n"
        "vpadal.s16 %q[g], q4\n"
        "vpadal.s16 %q[h], q5\n"
        "bne 1b\n"
        : [a] "+w"(pairs[0]), [b] "+w"(pairs[1]), [c] "+w"(pairs[2]), [d] "+w"(pairs[3]),
          [e] "+w"(pairs[4]), [f] "+w"(pairs[5]), [g] "+w"(pairs[6]), [h] "+w"(pairs[7]),
          [from] "+r"(from), [weights] "+r"(weights), [quads] "+r"(quads)
        :
        : "memory", "cc", "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7");
  }
#pragma GCC unroll 8
  for (std::size_t j = 0; j < 8; ++j) {
    const int32x2_t both = vpadd_s32(vget_low_s32(pairs[j]), vget_high_s32(pairs[j]));
    vst1_s32(sums + 2 * j, vadd_s32(vld1_s32(sums + 2 * j), both));
  }
}

// Of a whole panel; as Rounding does it.
ARENITE_INLINE void requantise_panel(const Int8Tile& tile, const std::int32_t* sums,
                                     std::uint8_t* to) {
  const Rounding<std::uint8_t> rounding(tile.store.min, tile.store.max, tile.store.zero_point);
  const float32x4_t low = vdupq_n_f32(rounding.low);
  const float32x4_t rounder = vdupq_n_f32(kRounder);
  int16x4_t halves[4];
#pragma GCC unroll 4
  for (std::size_t j = 0; j < 4; ++j) {
    float32x4_t value =
        vmulq_f32(vcvtq_f32_s32(vld1q_s32(sums + 4 * j)), vld1q_f32(tile.scales + 4 * j));
    value = vbslq_f32(vcgtq_f32(value, low), value, low);
    value = vminq_f32(value, vdupq_n_f32(rounding.high));
    value = vsubq_f32(vaddq_f32(value, rounder), rounder);
    halves[j] = vmovn_s32(vaddq_s32(vcvtq_s32_f32(value), vdupq_n_s32(rounding.zero_point)));
  }
  const int8x8_t first = vmovn_s16(vcombine_s16(halves[0], halves[1]));
  const int8x8_t second = vmovn_s16(vcombine_s16(halves[2], halves[3]));
  vst1q_u8(to, vreinterpretq_u8_s8(vcombine_s8(first, second)));
}
#else
using Byte = std::uint8_t;

ARENITE_INLINE void add_products(const Int8Tile& tile, std::size_t pixel,
                                 std::int32_t (&sums)[kInt8Panel]) {
  const std::int8_t* quad = tile.weights;
  for (std::size_t run = 0; run < tile.num_runs; ++run) {
    const std::uint8_t* from = tile.runs[run] + pixel * tile.step;
    for (std::size_t q = 0; q < tile.quads; ++q) {
      for (std::size_t j = 0; j < kInt8Panel; ++j) {
        const std::int32_t sum = from[0] * quad[4 * j] + from[1] * quad[4 * j + 1] +
                                 from[2] * quad[4 * j + 2] + from[3] * quad[4 * j + 3];
        sums[j] = static_cast<std::int32_t>(static_cast<std::uint32_t>(sums[j]) +
                                            static_cast<std::uint32_t>(sum));
      }
      from += kInt8Quad;
      quad += kInt8Panel * kInt8Quad;
    }
  }
}

ARENITE_INLINE void requantise_panel(const Int8Tile& tile, const std::int32_t* sums,
                                     std::uint8_t* to) {
  requantise(tile.store, tile.scales, sums, kInt8Panel, to);
}
#endif

void make_pixel(const Int8Tile& tile, std::size_t pixel) {
  const std::int32_t* begin = tile.is_first ? tile.start : tile.sums_of(pixel);
  const auto addend = static_cast<std::uint32_t>(tile.addends == nullptr ? 0 : tile.addends[pixel]);
  std::int32_t sums[kInt8Panel];
  for (std::size_t j = 0; j < kInt8Panel; ++j) {
    sums[j] = static_cast<std::int32_t>(static_cast<std::uint32_t>(begin[j]) + addend);
  }
  add_products(tile, pixel, sums);
  std::uint8_t* to = tile.to + pixel * tile.step_to;
  if (!tile.is_last) {
    std::memcpy(tile.sums_of(pixel), sums, sizeof sums);
  } else if (tile.channels == kInt8Panel) {
    requantise_panel(tile, sums, to);
  } else {
    requantise(tile.store, tile.scales, sums, tile.channels, to);
  }
}

}  // namespace

const Int8Kernel& int8_kernel_for_any() {
  static constexpr MakeInt8Pixels kPixels[] = {make_pixel};
  static const Int8Kernel kernel{std::is_signed_v<Byte>,
                                 1,
                                 {kInt8Panel, 1, kPixels},
                                 {kInt8Panel, 1, kPixels},
                                 copy_int8,
                                 nullptr,
                                 fill_int8,
                                 gather_int8,
                                 add_up_int8<Byte>,
                                 nullptr,
                                 finish_int8};
  return kernel;
}

}  // namespace arenite

#endif
