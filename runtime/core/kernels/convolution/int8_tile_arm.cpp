// Products of tiles for 64-bit ARM: with sums of four products of bytes, or without.
#include "kernels/convolution/int8_tile.hpp"
#include "kernels/processor.hpp"

#if defined(__aarch64__) && defined(__GNUC__)

#include <arm_neon.h>

#include <cstring>

namespace arenite {

namespace {

constexpr std::size_t kQuadBytes = kInt8Panel * kInt8Quad;
constexpr std::size_t kDepth = 1024;
constexpr std::size_t kStride = kDepth + 64;
constexpr std::size_t kPixels = 12;
static_assert(kPixels * kStride <= kInt8SlabBytes);

#define ARENITE_FOR_DOT_PRODUCTS __attribute__((target("arch=armv8.2-a+dotprod")))

void copy(const Int8Runs& runs, std::byte* to) {
  const auto signs = static_cast<std::uint8_t>(runs.flip ^ 0x80);
  const std::uint8_t* from = runs.data;
  for (std::size_t run = 0; run < runs.count; ++run) {
    auto* bytes = reinterpret_cast<std::uint8_t*>(to);
    for (std::size_t i = 0; i < runs.size; ++i) {
      bytes[i] = from[i] ^ signs;
    }
    from += runs.step;
    to += runs.step_to;
  }
}

const std::int8_t* bytes_at(const std::byte* slab) {
  return reinterpret_cast<const std::int8_t*>(slab);
}

template <std::size_t Pixels>
ARENITE_FOR_DOT_PRODUCTS void tile_with_dots(const std::byte* slab, std::size_t quads,
                                             const std::int8_t* weights, const std::int32_t* start,
                                             std::int32_t* sums) {
  int32x4_t made[Pixels][4];
#pragma GCC unroll 6
  for (std::size_t p = 0; p < Pixels; ++p) {
#pragma GCC unroll 4
    for (std::size_t j = 0; j < 4; ++j) {
      made[p][j] = vld1q_s32((start != nullptr ? start : sums + p * kInt8SumStride) + 4 * j);
    }
  }
  std::size_t q = 0;
  for (; q + 4 <= quads; q += 4) {
    int8x16_t source[Pixels];
#pragma GCC unroll 6
    for (std::size_t p = 0; p < Pixels; ++p) {
      source[p] = vld1q_s8(bytes_at(slab + p * kStride));
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
    slab += 4 * kInt8Quad;
    weights += 4 * kQuadBytes;
  }
  for (; q < quads; ++q) {
#pragma GCC unroll 6
    for (std::size_t p = 0; p < Pixels; ++p) {
      std::int32_t quad;
      std::memcpy(&quad, slab + p * kStride, sizeof quad);
      const int8x16_t source = vreinterpretq_s8_s32(vdupq_n_s32(quad));
#pragma GCC unroll 4
      for (std::size_t j = 0; j < 4; ++j) {
        made[p][j] = vdotq_s32(made[p][j], vld1q_s8(weights + 16 * j), source);
      }
    }
    slab += kInt8Quad;
    weights += kQuadBytes;
  }
#pragma GCC unroll 6
  for (std::size_t p = 0; p < Pixels; ++p) {
#pragma GCC unroll 4
    for (std::size_t j = 0; j < 4; ++j) {
      vst1q_s32(sums + p * kInt8SumStride + 4 * j, made[p][j]);
    }
  }
}

// Each vector has the sums of two channels, as two parts side by side. Products of bytes fit 16
// bits and a sum of two need not, so that each is added up at 32.
template <std::size_t Pixels>
void tile_without(const std::byte* slab, std::size_t quads, const std::int8_t* weights,
                  const std::int32_t* start, std::int32_t* sums) {
  int32x4_t made[Pixels][8] = {};
  for (std::size_t q = 0; q < quads; ++q) {
    int8x16_t source[Pixels];
#pragma GCC unroll 2
    for (std::size_t p = 0; p < Pixels; ++p) {
      std::int32_t quad;
      std::memcpy(&quad, slab + p * kStride, sizeof quad);
      source[p] = vreinterpretq_s8_s32(vdupq_n_s32(quad));
    }
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
    slab += kInt8Quad;
    weights += kQuadBytes;
  }
#pragma GCC unroll 2
  for (std::size_t p = 0; p < Pixels; ++p) {
    std::int32_t* to = sums + p * kInt8SumStride;
    const std::int32_t* first = start != nullptr ? start : to;
#pragma GCC unroll 4
    for (std::size_t j = 0; j < 4; ++j) {
      const int32x4_t added = vpaddq_s32(made[p][2 * j], made[p][2 * j + 1]);
      vst1q_s32(to + 4 * j, vaddq_s32(added, vld1q_s32(first + 4 * j)));
    }
  }
}

using TileOfSome = void (*)(const std::byte*, std::size_t, const std::int8_t*, const std::int32_t*,
                            std::int32_t*);

template <std::size_t Most>
void multiply_by(const TileOfSome (&kernels)[Most], const Int8Tile& tile,
                 const std::int8_t* weights, std::size_t panel_bytes, std::size_t panels,
                 const std::int32_t* start, std::int32_t* sums) {
  for (std::size_t panel = 0; panel < panels; ++panel) {
    const std::size_t channel = panel * kInt8Panel;
    for (std::size_t p = 0; p < tile.pixels; p += Most) {
      const std::size_t count = tile.pixels - p < Most ? tile.pixels - p : Most;
      kernels[count - 1](tile.slab + p * kStride, tile.quads, weights + panel * panel_bytes,
                         start == nullptr ? nullptr : start + channel,
                         sums + p * kInt8SumStride + channel);
    }
  }
}

constexpr TileOfSome kWithDots[] = {tile_with_dots<1>, tile_with_dots<2>, tile_with_dots<3>,
                                    tile_with_dots<4>};
constexpr TileOfSome kWithout[] = {tile_without<1>, tile_without<2>};

void multiply_with_dots(const Int8Tile& tile, const std::int8_t* weights, std::size_t panel_bytes,
                        std::size_t panels, const std::int32_t* start, std::int32_t* sums) {
  multiply_by(kWithDots, tile, weights, panel_bytes, panels, start, sums);
}

void multiply_without(const Int8Tile& tile, const std::int8_t* weights, std::size_t panel_bytes,
                      std::size_t panels, const std::int32_t* start, std::int32_t* sums) {
  multiply_by(kWithout, tile, weights, panel_bytes, panels, start, sums);
}

constexpr auto kForm = Int8TileKernel::Form::signed_bytes;
constexpr Int8TileKernel kDots{kForm,   kPixels, kDepth / kInt8Quad,
                               kStride, copy,    multiply_with_dots};
constexpr Int8TileKernel kNoDots{kForm,   kPixels, kDepth / kInt8Quad,
                                 kStride, copy,    multiply_without};

}  // namespace

const Int8TileKernel* int8_tile_for_arm() { return has_dot_products() ? &kDots : &kNoDots; }

}  // namespace arenite

#else

namespace arenite {

const Int8TileKernel* int8_tile_for_arm() { return nullptr; }

}  // namespace arenite

#endif
