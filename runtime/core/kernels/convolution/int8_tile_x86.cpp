// Products of tiles for x86-64: with sums of four products of bytes, or of two of 16 bits.
#include "kernels/convolution/int8_tile.hpp"
#include "kernels/processor.hpp"
#include "kernels/x86_intrinsics.hpp"

#if defined(__x86_64__) && defined(__GNUC__)

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace arenite {

namespace {

constexpr std::size_t kQuadBytes = kInt8Panel * kInt8Quad;

// Source elements of 16 bits in a slab, and of bytes.
constexpr std::size_t kWideDepth = 512;
constexpr std::size_t kWideStride = kWideDepth * sizeof(std::int16_t) + 64;
constexpr std::size_t kDepth = 1024;
constexpr std::size_t kStride = kDepth + 64;
static_assert(kInt8TilePixels * kStride <= kInt8SlabBytes && 12 * kWideStride <= kInt8SlabBytes);

std::int32_t load32(const std::byte* from) {
  std::int32_t value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

ARENITE_FOR_VNNI void copy_for_vnni(const Int8Runs& runs, std::byte* to) {
  const __m512i flips = _mm512_set1_epi8(static_cast<char>(runs.flip));
  const std::size_t whole = runs.size / 64 * 64;
  const __mmask64 rest = (std::uint64_t{1} << (runs.size - whole)) - 1;
  const std::uint8_t* from = runs.data;
  for (std::size_t run = 0; run < runs.count; ++run) {
    for (std::size_t i = 0; i < whole; i += 64) {
      _mm512_storeu_si512(to + i, _mm512_xor_si512(_mm512_loadu_si512(from + i), flips));
    }
    if (rest != 0) {
      const __m512i bytes = _mm512_maskz_loadu_epi8(rest, from + whole);
      _mm512_mask_storeu_epi8(to + whole, rest, _mm512_xor_si512(bytes, flips));
    }
    from += runs.step;
    to += runs.step_to;
  }
}

template <std::size_t Pixels, std::size_t Panels>
ARENITE_FOR_VNNI void tile_for_vnni(const Int8Tile& tile, const std::int8_t* weights,
                                    std::size_t panel_bytes, const std::int32_t* start,
                                    std::int32_t* sums) {
  __m512i made[Pixels][Panels];
#pragma GCC unroll 14
  for (std::size_t p = 0; p < Pixels; ++p) {
#pragma GCC unroll 2
    for (std::size_t j = 0; j < Panels; ++j) {
      const std::int32_t* first = start != nullptr ? start : sums + p * kInt8SumStride;
      made[p][j] = _mm512_loadu_si512(first + j * kInt8Panel);
    }
  }
  const std::byte* slab = tile.slab;
  for (std::size_t q = 0; q < tile.quads; ++q) {
    __m512i quads[Panels];
#pragma GCC unroll 2
    for (std::size_t j = 0; j < Panels; ++j) {
      quads[j] = _mm512_loadu_si512(weights + j * panel_bytes);
      _mm_prefetch(reinterpret_cast<const char*>(weights + j * panel_bytes + 24 * kQuadBytes),
                   _MM_HINT_T0);
    }
#pragma GCC unroll 14
    for (std::size_t p = 0; p < Pixels; ++p) {
      const __m512i source = _mm512_set1_epi32(load32(slab + p * kStride));
#pragma GCC unroll 2
      for (std::size_t j = 0; j < Panels; ++j) {
        made[p][j] = _mm512_dpbusd_epi32(made[p][j], source, quads[j]);
      }
    }
    slab += kInt8Quad;
    weights += kQuadBytes;
  }
#pragma GCC unroll 14
  for (std::size_t p = 0; p < Pixels; ++p) {
#pragma GCC unroll 2
    for (std::size_t j = 0; j < Panels; ++j) {
      _mm512_storeu_si512(sums + p * kInt8SumStride + j * kInt8Panel, made[p][j]);
    }
  }
}

using TileForVnni = void (*)(const Int8Tile&, const std::int8_t*, std::size_t, const std::int32_t*,
                             std::int32_t*);

template <std::size_t Panels, std::size_t... Less>
constexpr std::array<TileForVnni, kInt8TilePixels> tiles_for_vnni(std::index_sequence<Less...>) {
  return {tile_for_vnni<Less + 1, Panels>...};
}

void multiply_for_vnni(const Int8Tile& tile, const std::int8_t* weights, std::size_t panel_bytes,
                       std::size_t panels, const std::int32_t* start, std::int32_t* sums) {
  using Pixels = std::make_index_sequence<kInt8TilePixels>;
  static constexpr auto kOne = tiles_for_vnni<1>(Pixels());
  static constexpr auto kTwo = tiles_for_vnni<2>(Pixels());
  (panels == 1 ? kOne : kTwo)[tile.pixels - 1](tile, weights, panel_bytes, start, sums);
}

ARENITE_FOR_AVX2 void copy_for_avx2(const Int8Runs& runs, std::byte* to) {
  const __m128i flips = _mm_set1_epi8(static_cast<char>(runs.flip));
  const __m256i zeros = _mm256_set1_epi16(static_cast<short>(runs.zero));
  const std::uint8_t* from = runs.data;
  for (std::size_t run = 0; run < runs.count; ++run) {
    auto* differences = reinterpret_cast<std::int16_t*>(to);
    std::size_t i = 0;
    for (; i + 16 <= runs.size; i += 16) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
      const __m256i wide = _mm256_cvtepu8_epi16(_mm_xor_si128(bytes, flips));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(differences + i),
                          _mm256_sub_epi16(wide, zeros));
    }
    for (; i < runs.size; ++i) {
      differences[i] = static_cast<std::int16_t>((from[i] ^ runs.flip) - runs.zero);
    }
    from += runs.step;
    to += runs.step_to;
  }
}

// Sums of eight channels, four a vector, as two parts side by side.
template <std::size_t Pixels>
ARENITE_FOR_AVX2 void tile_for_avx2(const std::byte* slab, std::size_t quads,
                                    const std::int8_t* weights, const std::int32_t* start,
                                    std::int32_t* sums) {
  __m256i made[Pixels][2] = {};
  for (std::size_t q = 0; q < quads; ++q) {
    const auto* bytes = reinterpret_cast<const __m128i*>(weights);
    const __m256i low = _mm256_cvtepi8_epi16(_mm_loadu_si128(bytes));
    const __m256i high = _mm256_cvtepi8_epi16(_mm_loadu_si128(bytes + 1));
#pragma GCC unroll 6
    for (std::size_t p = 0; p < Pixels; ++p) {
      long long quad;
      std::memcpy(&quad, slab + p * kWideStride, sizeof quad);
      const __m256i source = _mm256_set1_epi64x(quad);
      made[p][0] = _mm256_add_epi32(made[p][0], _mm256_madd_epi16(source, low));
      made[p][1] = _mm256_add_epi32(made[p][1], _mm256_madd_epi16(source, high));
    }
    slab += kInt8Quad * sizeof(std::int16_t);
    weights += kQuadBytes;
  }
#pragma GCC unroll 6
  for (std::size_t p = 0; p < Pixels; ++p) {
    auto* to = reinterpret_cast<__m256i*>(sums + p * kInt8SumStride);
    const auto* first = start != nullptr ? reinterpret_cast<const __m256i*>(start) : to;
    const __m256i added = _mm256_permute4x64_epi64(_mm256_hadd_epi32(made[p][0], made[p][1]),
                                                   _MM_SHUFFLE(3, 1, 2, 0));
    _mm256_storeu_si256(to, _mm256_add_epi32(added, _mm256_loadu_si256(first)));
  }
}

// The same, two channels a vector.
template <std::size_t Pixels>
void tile_for_sse2(const std::byte* slab, std::size_t quads, const std::int8_t* weights,
                   const std::int32_t* start, std::int32_t* sums) {
  __m128i made[Pixels][4] = {};
  for (std::size_t q = 0; q < quads; ++q) {
    __m128i source[Pixels];
#pragma GCC unroll 3
    for (std::size_t p = 0; p < Pixels; ++p) {
      const __m128i quad =
          _mm_loadl_epi64(reinterpret_cast<const __m128i*>(slab + p * kWideStride));
      source[p] = _mm_unpacklo_epi64(quad, quad);
    }
#pragma GCC unroll 2
    for (std::size_t j = 0; j < 2; ++j) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(weights) + j);
      const __m128i low = _mm_srai_epi16(_mm_unpacklo_epi8(bytes, bytes), 8);
      const __m128i high = _mm_srai_epi16(_mm_unpackhi_epi8(bytes, bytes), 8);
#pragma GCC unroll 3
      for (std::size_t p = 0; p < Pixels; ++p) {
        made[p][2 * j] = _mm_add_epi32(made[p][2 * j], _mm_madd_epi16(source[p], low));
        made[p][2 * j + 1] = _mm_add_epi32(made[p][2 * j + 1], _mm_madd_epi16(source[p], high));
      }
    }
    slab += kInt8Quad * sizeof(std::int16_t);
    weights += kQuadBytes;
  }
#pragma GCC unroll 3
  for (std::size_t p = 0; p < Pixels; ++p) {
    std::int32_t* to = sums + p * kInt8SumStride;
    const std::int32_t* first = start != nullptr ? start : to;
#pragma GCC unroll 2
    for (std::size_t j = 0; j < 2; ++j) {
      const __m128 a = _mm_castsi128_ps(made[p][2 * j]);
      const __m128 b = _mm_castsi128_ps(made[p][2 * j + 1]);
      const __m128i added =
          _mm_add_epi32(_mm_castps_si128(_mm_shuffle_ps(a, b, _MM_SHUFFLE(2, 0, 2, 0))),
                        _mm_castps_si128(_mm_shuffle_ps(a, b, _MM_SHUFFLE(3, 1, 3, 1))));
      const __m128i before = _mm_loadu_si128(reinterpret_cast<const __m128i*>(first + j * 4));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + j * 4), _mm_add_epi32(added, before));
    }
  }
}

void copy_for_sse2(const Int8Runs& runs, std::byte* to) {
  const std::uint8_t* from = runs.data;
  for (std::size_t run = 0; run < runs.count; ++run) {
    auto* differences = reinterpret_cast<std::int16_t*>(to);
    for (std::size_t i = 0; i < runs.size; ++i) {
      differences[i] = static_cast<std::int16_t>((from[i] ^ runs.flip) - runs.zero);
    }
    from += runs.step;
    to += runs.step_to;
  }
}

using WideTile = void (*)(const std::byte*, std::size_t, const std::int8_t*, const std::int32_t*,
                          std::int32_t*);

// Some pixels at a time, for each half of a panel: its weights stay in the first cache.
template <std::size_t Most>
void multiply_wide(const std::array<WideTile, Most>& tiles, const Int8Tile& tile,
                   const std::int8_t* weights, std::size_t panel_bytes, std::size_t panels,
                   const std::int32_t* start, std::int32_t* sums) {
  for (std::size_t half = 0; half < 2 * panels; ++half) {
    const std::size_t channel = half * kInt8Panel / 2;
    const std::int8_t* factors = weights + half / 2 * panel_bytes + half % 2 * kQuadBytes / 2;
    for (std::size_t p = 0; p < tile.pixels; p += Most) {
      const std::size_t count = std::min(tile.pixels - p, Most);
      tiles[count - 1](tile.slab + p * kWideStride, tile.quads, factors,
                       start == nullptr ? nullptr : start + channel,
                       sums + p * kInt8SumStride + channel);
    }
  }
}

constexpr std::array<WideTile, 6> kTilesForAvx2{tile_for_avx2<1>, tile_for_avx2<2>,
                                                tile_for_avx2<3>, tile_for_avx2<4>,
                                                tile_for_avx2<5>, tile_for_avx2<6>};
constexpr std::array<WideTile, 3> kTilesForSse2{tile_for_sse2<1>, tile_for_sse2<2>,
                                                tile_for_sse2<3>};

void multiply_for_avx2(const Int8Tile& tile, const std::int8_t* weights, std::size_t panel_bytes,
                       std::size_t panels, const std::int32_t* start, std::int32_t* sums) {
  multiply_wide(kTilesForAvx2, tile, weights, panel_bytes, panels, start, sums);
}

void multiply_for_sse2(const Int8Tile& tile, const std::int8_t* weights, std::size_t panel_bytes,
                       std::size_t panels, const std::int32_t* start, std::int32_t* sums) {
  multiply_wide(kTilesForSse2, tile, weights, panel_bytes, panels, start, sums);
}

constexpr Int8TileKernel kVnni{Int8TileKernel::Form::unsigned_bytes,
                               kInt8TilePixels,
                               kDepth / kInt8Quad,
                               kStride,
                               copy_for_vnni,
                               multiply_for_vnni};
constexpr Int8TileKernel kAvx2{Int8TileKernel::Form::differences,
                               12,
                               kWideDepth / kInt8Quad,
                               kWideStride,
                               copy_for_avx2,
                               multiply_for_avx2};
constexpr Int8TileKernel kSse2{Int8TileKernel::Form::differences,
                               12,
                               kWideDepth / kInt8Quad,
                               kWideStride,
                               copy_for_sse2,
                               multiply_for_sse2};

}  // namespace

const Int8TileKernel* int8_tile_for_x86() {
  if (has_dot_products()) {
    return &kVnni;
  }
  return vectors() == Vectors::any ? &kSse2 : &kAvx2;
}

}  // namespace arenite

#else

namespace arenite {

const Int8TileKernel* int8_tile_for_x86() { return nullptr; }

}  // namespace arenite

#endif
