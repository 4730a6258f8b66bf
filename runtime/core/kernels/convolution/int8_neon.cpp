// Convolutions of 8-bit integers for 64-bit ARM, with dot products of four bytes or without.
#include "kernels/processor.hpp"

#if defined(ARENITE_ARM64)

#include <arm_neon.h>

#include "kernels/convolution/int8_kernel.hpp"

namespace arenite {

namespace {

constexpr std::size_t kQuadBytes = kInt8Panel * kInt8Quad;

#define ARENITE_FOR_DOT_PRODUCTS __attribute__((target("arch=armv8.2-a+dotprod")))

int8x16_t load_quad(const std::uint8_t* from) {
  std::int32_t quad;
  std::memcpy(&quad, from, sizeof quad);
  return vreinterpretq_s8_s32(vdupq_n_s32(quad));
}

template <std::size_t Pixels>
ARENITE_FOR_DOT_PRODUCTS void make_with_dots(const Int8Tile& tile, std::size_t pixel) {
  std::int32_t sums[Pixels][kInt8Panel];
  begin_int8_sums(tile, pixel, sums);
  int32x4_t made[Pixels][4];
#pragma GCC unroll 6
  for (std::size_t p = 0; p < Pixels; ++p) {
#pragma GCC unroll 4
    for (std::size_t j = 0; j < 4; ++j) { made[p][j] = vld1q_s32(sums[p] + 4 * j); }
  }
  const std::int8_t* weights = tile.weights;
  const std::size_t step = tile.step;
  for (std::size_t run = 0; run < tile.num_runs; ++run) {
    const std::uint8_t* from = tile.runs[run] + pixel * step;
    std::size_t q = 0;
    for (; q + 4 <= tile.quads; q += 4) {
      int8x16_t source[Pixels];
#pragma GCC unroll 6
      for (std::size_t p = 0; p < Pixels; ++p) {
        source[p] = vld1q_s8(reinterpret_cast<const std::int8_t*>(from + p * step));
      }
#define ARENITE_QUAD(LANE)                                                    \
  _Pragma("GCC unroll 4") for (std::size_t j = 0; j < 4; ++j) {               \
    const int8x16_t factors = vld1q_s8(weights + LANE * kQuadBytes + 16 * j); \
    _Pragma("GCC unroll 6") for (std::size_t p = 0; p < Pixels; ++p) {        \
      made[p][j] = vdotq_laneq_s32(made[p][j], factors, source[p], LANE);     \
    }                                                                         \
  }
      ARENITE_QUAD(0)
      ARENITE_QUAD(1)
      ARENITE_QUAD(2)
      ARENITE_QUAD(3)
#undef ARENITE_QUAD
      from += 4 * kInt8Quad;
      weights += 4 * kQuadBytes;
    }
    for (; q < tile.quads; ++q) {
#pragma GCC unroll 6
      for (std::size_t p = 0; p < Pixels; ++p) {
        const int8x16_t source = load_quad(from + p * step);
#pragma GCC unroll 4
        for (std::size_t j = 0; j < 4; ++j) {
          made[p][j] = vdotq_s32(made[p][j], vld1q_s8(weights + 16 * j), source);
        }
      }
      from += kInt8Quad;
      weights += kQuadBytes;
    }
  }
#pragma GCC unroll 6
  for (std::size_t p = 0; p < Pixels; ++p) {
#pragma GCC unroll 4
    for (std::size_t j = 0; j < 4; ++j) { vst1q_s32(sums[p] + 4 * j, made[p][j]); }
  }
  end_int8_sums(tile, pixel, sums);
}

// Each vector has the sums of two channels, as two parts side by side. A product of bytes fits 16
// bits, a sum of two need not: each is added at 32 bits.
template <std::size_t Pixels>
void make_without(const Int8Tile& tile, std::size_t pixel) {
  std::int32_t sums[Pixels][kInt8Panel];
  begin_int8_sums(tile, pixel, sums);
  int32x4_t made[Pixels][8] = {};
  const std::int8_t* weights = tile.weights;
  for (std::size_t run = 0; run < tile.num_runs; ++run) {
    const std::uint8_t* from = tile.runs[run] + pixel * tile.step;
    for (std::size_t q = 0; q < tile.quads; ++q) {
      int8x16_t source[Pixels];
#pragma GCC unroll 2
      for (std::size_t p = 0; p < Pixels; ++p) { source[p] = load_quad(from + p * tile.step); }
#pragma GCC unroll 4
      for (std::size_t j = 0; j < 4; ++j) {
        const int8x16_t factors = vld1q_s8(weights + 16 * j);
#pragma GCC unroll 2
        for (std::size_t p = 0; p < Pixels; ++p) {
          made[p][2 * j] =
              vpadalq_s16(made[p][2 * j], vmull_s8(vget_low_s8(factors), vget_low_s8(source[p])));
          made[p][2 * j + 1] = vpadalq_s16(made[p][2 * j + 1], vmull_high_s8(factors, source[p]));
        }
      }
      from += kInt8Quad;
      weights += kQuadBytes;
    }
  }
#pragma GCC unroll 2
  for (std::size_t p = 0; p < Pixels; ++p) {
#pragma GCC unroll 4
    for (std::size_t j = 0; j < 4; ++j) {
      const int32x4_t added = vpaddq_s32(made[p][2 * j], made[p][2 * j + 1]);
      vst1q_s32(sums[p] + 4 * j, vaddq_s32(added, vld1q_s32(sums[p] + 4 * j)));
    }
  }
  end_int8_sums(tile, pixel, sums);
}

constexpr MakeInt8Pixels kWithDots[] = {make_with_dots<1>, make_with_dots<2>, make_with_dots<3>,
                                        make_with_dots<4>};
constexpr MakeInt8Pixels kWithout[] = {make_without<1>, make_without<2>};

}  // namespace

const Int8Kernel& int8_kernel_for_neon() {
  static const Int8Kernel kernel = [] {
    const Int8Tiles tiles = has_dot_products() ? Int8Tiles{kInt8Panel, 4, kWithDots}
                                               : Int8Tiles{kInt8Panel, 2, kWithout};
    return Int8Kernel{true,      1,           tiles,
                      tiles,     copy_int8,   nullptr,
                      fill_int8, gather_int8, add_up_int8<std::int8_t>};
  }();
  return kernel;
}

}  // namespace arenite

#endif
