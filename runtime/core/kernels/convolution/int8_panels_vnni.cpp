// Tiles of one or two panels for x86-64 with sums of four products of bytes.
#include "kernels/convolution/int8_panels.hpp"
#include "kernels/processor.hpp"
#include "kernels/x86_intrinsics.hpp"

#if defined(__x86_64__) && defined(__GNUC__)

#include <array>
#include <cstring>
#include <utility>

namespace arenite {

namespace {

constexpr std::size_t kQuadBytes = kInt8Panel * kInt8Quad;

std::int32_t load32(const std::uint8_t* from) {
  std::int32_t value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// As _mm512_dpbusd_epi32, of which GCC 12 keeps the sums before and after in registers, more than
// there are.
ARENITE_FOR_VNNI ARENITE_INLINE void add_products(__m512i& sums, __m512i source, __m512i weights) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(source), "v"(weights));
}

// What a store needs of it, in registers.
struct Limits {
  ARENITE_FOR_VNNI explicit Limits(const QuantisedStore& store)
      : high(_mm512_set1_ps(static_cast<float>(store.max - store.zero_point))),
        zero_points(_mm512_set1_epi16(static_cast<short>(store.zero_point))),
        min(_mm512_set1_epi16(static_cast<short>(store.min))),
        max(_mm512_set1_epi16(static_cast<short>(store.max))),
        is_unsigned(store.max > 127),
        is_whole(store.max - store.min == 255) {}

  __m512 high;
  __m512i zero_points;
  __m512i min;
  __m512i max;
  bool is_unsigned;
  bool is_whole;  // as wide as the type: packing clamps
};

// What is too low becomes the lowest integer, and saturates; so would what is too high.
template <bool MayOverflow>
ARENITE_FOR_VNNI ARENITE_INLINE __m512i scaled(__m512i sums, __m512 scales, const Limits& limits) {
  const __m512 product = _mm512_mul_ps(_mm512_cvtepi32_ps(sums), scales);
  return _mm512_cvtps_epi32(MayOverflow ? _mm512_min_ps(product, limits.high) : product);
}

// Four vectors of scaled sums as bytes, one behind another.
ARENITE_FOR_VNNI ARENITE_INLINE __m512i packed(__m512i a, __m512i b, __m512i c, __m512i d,
                                               const Limits& limits) {
  __m512i low = _mm512_adds_epi16(_mm512_packs_epi32(a, b), limits.zero_points);
  __m512i high = _mm512_adds_epi16(_mm512_packs_epi32(c, d), limits.zero_points);
  if (!limits.is_whole) {
    low = _mm512_min_epi16(_mm512_max_epi16(low, limits.min), limits.max);
    high = _mm512_min_epi16(_mm512_max_epi16(high, limits.min), limits.max);
  }
  const __m512i bytes =
      limits.is_unsigned ? _mm512_packus_epi16(low, high) : _mm512_packs_epi16(low, high);
  // Packing takes turns among four lanes of each vector; this undoes it.
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return _mm512_permutexvar_epi32(order, bytes);
}

template <std::size_t Pixels, std::size_t Panels>
ARENITE_FOR_VNNI void make_tile(const Int8Panels& given, std::size_t pixel) {
  __m512i made[Pixels * Panels];
#pragma GCC unroll 16
  for (std::size_t p = 0; p < Pixels; ++p) {
#pragma GCC unroll 2
    for (std::size_t j = 0; j < Panels; ++j) {
      made[p * Panels + j] = _mm512_load_si512(given.start + j * kInt8Panel);
    }
  }
  if (given.addends != nullptr) {
#pragma GCC unroll 28
    for (std::size_t v = 0; v < Pixels * Panels; ++v) {
      made[v] = _mm512_add_epi32(made[v], _mm512_set1_epi32(given.addends[pixel + v / Panels]));
    }
  }
  // Addresses are of two pixels and what four registers scaled by 1, 2 and 4 reach.
  const std::size_t step = given.step;
  const std::size_t three = opaque(3 * step);
  const std::size_t five = opaque(5 * step);
  const std::size_t seven = opaque(7 * step);
  const std::int8_t* weights = given.weights;
  const std::size_t panel_bytes = given.panel_bytes;
  for (std::size_t run = 0; run < given.num_runs; ++run) {
    const std::uint8_t* from = given.runs[run] + pixel * step;
    const std::uint8_t* end = from + given.quads * kInt8Quad;
    do {
      const std::uint8_t* behind = from + seven;
      const std::uint8_t* const at[kInt8PixelsOfOne] = {from,
                                                        from + step,
                                                        from + 2 * step,
                                                        from + three,
                                                        from + 4 * step,
                                                        from + five,
                                                        from + 2 * three,
                                                        behind,
                                                        behind + step,
                                                        behind + 2 * step,
                                                        behind + three,
                                                        behind + 4 * step,
                                                        behind + five,
                                                        behind + 2 * three,
                                                        behind + seven,
                                                        behind + 8 * step};
      __m512i quads[Panels];
#pragma GCC unroll 2
      for (std::size_t j = 0; j < Panels; ++j) {
        quads[j] = _mm512_loadu_si512(weights + j * panel_bytes);
      }
#pragma GCC unroll 16
      for (std::size_t p = 0; p < Pixels; ++p) {
        const __m512i source = _mm512_set1_epi32(load32(at[p]));
#pragma GCC unroll 2
        for (std::size_t j = 0; j < Panels; ++j) {
          add_products(made[p * Panels + j], source, quads[j]);
        }
      }
      from += kInt8Quad;
      weights += kQuadBytes;
    } while (from < end);
  }
  const Limits limits(given.store);
  __m512 scales[Panels];
#pragma GCC unroll 2
  for (std::size_t j = 0; j < Panels; ++j) {
    scales[j] = _mm512_load_ps(given.scales + j * kInt8Panel);
  }
  constexpr std::size_t kCount = Pixels * Panels;
  if (given.may_overflow) {
#pragma GCC unroll 28
    for (std::size_t v = 0; v < kCount; ++v) {
      made[v] = scaled<true>(made[v], scales[v % Panels], limits);
    }
  } else {
#pragma GCC unroll 28
    for (std::size_t v = 0; v < kCount; ++v) {
      made[v] = scaled<false>(made[v], scales[v % Panels], limits);
    }
  }
  std::uint8_t* to = given.to + pixel * given.step_to;
  const bool is_dense = given.step_to == Panels * kInt8Panel && given.channels == given.step_to;
  const auto last = static_cast<__mmask16>(
      (std::uint32_t{1} << (given.channels - (Panels - 1) * kInt8Panel)) - 1);
#pragma GCC unroll 7
  for (std::size_t v = 0; v < kCount; v += 4) {
    constexpr std::size_t kLast = kCount - 1;
    const __m512i bytes =
        packed(made[v], made[v + 1 < kLast ? v + 1 : kLast], made[v + 2 < kLast ? v + 2 : kLast],
               made[v + 3 < kLast ? v + 3 : kLast], limits);
    if (is_dense && v + 4 <= kCount) {
      _mm512_storeu_si512(to + v * kInt8Panel, bytes);
      continue;
    }
    const __m128i parts[4] = {_mm512_castsi512_si128(bytes), _mm512_extracti32x4_epi32(bytes, 1),
                              _mm512_extracti32x4_epi32(bytes, 2),
                              _mm512_extracti32x4_epi32(bytes, 3)};
#pragma GCC unroll 4
    for (std::size_t i = 0; i < 4; ++i) {
      if (v + i < kCount) {
        const std::size_t j = (v + i) % Panels;
        _mm_mask_storeu_epi8(to + (v + i) / Panels * given.step_to + j * kInt8Panel,
                             j + 1 == Panels ? last : static_cast<__mmask16>(0xffff), parts[i]);
      }
    }
  }
}

template <std::size_t Panels, std::size_t... Less>
constexpr std::array<MakeInt8Tile, sizeof...(Less)> tiles(std::index_sequence<Less...>) {
  return {make_tile<Less + 1, Panels>...};
}

constexpr auto kTilesOfOne = tiles<1>(std::make_index_sequence<kInt8PixelsOfOne>());
constexpr auto kTilesOfTwo = tiles<2>(std::make_index_sequence<kInt8PixelsOfTwo>());

}  // namespace

const MakeInt8Tile* int8_tiles_for_vnni(std::size_t panels) {
  if (!has_dot_products()) {
    return nullptr;
  }
  return panels == 1 ? kTilesOfOne.data() : kTilesOfTwo.data();
}

}  // namespace arenite

#else

namespace arenite {

const MakeInt8Tile* int8_tiles_for_vnni(std::size_t) { return nullptr; }

}  // namespace arenite

#endif
