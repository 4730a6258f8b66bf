// Tiles of a panel or of half of one for x86-64 with sums of two products of 16 bits.
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
constexpr std::size_t kLanes = 8;

ARENITE_FOR_AVX2 ARENITE_INLINE __m256i load(const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}

// Two bytes in 16 bits each, to every lane.
ARENITE_FOR_AVX2 ARENITE_INLINE __m256i two_of(const std::uint8_t* from) {
  std::int32_t value;
  std::memcpy(&value, from, sizeof value);
  return _mm256_set1_epi32(value);
}

// Makes the compiler load again what it would keep, for which there are no registers.
void forget() { asm volatile("" ::: "memory"); }

// Products, of two lanes each, added to sums. GCC 12 would add products to each other first and
// keep them all, more than there are registers.
ARENITE_FOR_AVX2 ARENITE_INLINE void add_products(__m256i& sums, __m256i source, __m256i weights) {
  __m256i products;
  asm("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0"
      : "+x"(sums), "=&x"(products)
      : "x"(source), "x"(weights));
}

// The first and third byte of each quad of weights, and the second and fourth.
ARENITE_FOR_AVX2 ARENITE_INLINE __m256i even_of(__m256i quads) {
  return _mm256_srai_epi16(_mm256_slli_epi16(quads, 8), 8);
}

ARENITE_FOR_AVX2 ARENITE_INLINE __m256i odd_of(__m256i quads) {
  return _mm256_srai_epi16(quads, 8);
}

// What a store needs of it, in registers.
struct Limits {
  ARENITE_FOR_AVX2 explicit Limits(const QuantisedStore& store)
      : high(_mm256_set1_ps(static_cast<float>(store.max - store.zero_point))),
        zero_points(_mm256_set1_epi16(static_cast<short>(store.zero_point))),
        min(_mm256_set1_epi16(static_cast<short>(store.min))),
        max(_mm256_set1_epi16(static_cast<short>(store.max))),
        is_unsigned(store.max > 127),
        is_whole(store.max - store.min == 255) {}

  __m256 high;
  __m256i zero_points;
  __m256i min;
  __m256i max;
  bool is_unsigned;
  bool is_whole;  // as wide as the type: packing clamps
};

// What is too low becomes the lowest integer, and saturates; so would what is too high.
template <bool MayOverflow>
ARENITE_FOR_AVX2 ARENITE_INLINE __m256i scaled(__m256i sums, __m256 scales, const Limits& limits) {
  const __m256 product = _mm256_mul_ps(_mm256_cvtepi32_ps(sums), scales);
  return _mm256_cvtps_epi32(MayOverflow ? _mm256_min_ps(product, limits.high) : product);
}

// Four vectors of scaled sums as bytes, one behind another.
ARENITE_FOR_AVX2 ARENITE_INLINE __m256i packed(__m256i a, __m256i b, __m256i c, __m256i d,
                                               const Limits& limits) {
  __m256i low = _mm256_adds_epi16(_mm256_packs_epi32(a, b), limits.zero_points);
  __m256i high = _mm256_adds_epi16(_mm256_packs_epi32(c, d), limits.zero_points);
  if (!limits.is_whole) {
    low = _mm256_min_epi16(_mm256_max_epi16(low, limits.min), limits.max);
    high = _mm256_min_epi16(_mm256_max_epi16(high, limits.min), limits.max);
  }
  const __m256i bytes =
      limits.is_unsigned ? _mm256_packus_epi16(low, high) : _mm256_packs_epi16(low, high);
  // Packing takes turns between two lanes of each vector; this undoes it.
  return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

// Up to 16 bytes, in as few stores as their number has bits.
ARENITE_FOR_AVX2 ARENITE_INLINE void store_some(__m128i bytes, std::size_t count,
                                                std::uint8_t* to) {
  if (count == sizeof bytes) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes);
    return;
  }
  std::uint64_t rest = static_cast<std::uint64_t>(_mm_cvtsi128_si64(bytes));
  if ((count & 8) != 0) {
    std::memcpy(to, &rest, 8);
    rest = static_cast<std::uint64_t>(_mm_extract_epi64(bytes, 1));
    to += 8;
  }
#pragma GCC unroll 3
  for (std::size_t size = 4; size > 0; size /= 2) {
    if ((count & size) != 0) {
      std::memcpy(to, &rest, size);
      rest >>= 8 * size;
      to += size;
    }
  }
}

template <std::size_t Pixels, std::size_t Halves>
ARENITE_FOR_AVX2 void make_tile(const Int8Panels& given, std::size_t pixel) {
  constexpr std::size_t kCount = Pixels * Halves;
  __m256i made[kCount];
#pragma GCC unroll 12
  for (std::size_t v = 0; v < kCount; ++v) {
    made[v] = load(given.start + v % Halves * kLanes);
  }
  if (given.addends != nullptr) {
#pragma GCC unroll 12
    for (std::size_t v = 0; v < kCount; ++v) {
      made[v] = _mm256_add_epi32(made[v], _mm256_set1_epi32(given.addends[pixel + v / Halves]));
    }
  }
  // Addresses are what three registers scaled by 1, 2 and 4 reach.
  const std::size_t step = given.step;
  const std::size_t three = opaque(3 * step);
  const std::size_t five = opaque(5 * step);
  const std::int8_t* weights = given.weights;
  for (std::size_t run = 0; run < given.num_runs; ++run) {
    const std::uint8_t* from = given.runs[run] + pixel * step;
    const std::uint8_t* end = from + given.quads * kInt8Quad * 2;
    do {
      const std::uint8_t* behind = from + five;
      const std::uint8_t* const at[kInt8PixelsOfHalf] = {
          from,   from + step,   from + 2 * step,  from + three, from + 4 * step,
          behind, behind + step, behind + 2 * step};
      __m256i factors[Halves];
#pragma GCC unroll 2
      for (std::size_t j = 0; j < Halves; ++j) {
        factors[j] = even_of(load(weights + j * sizeof(__m256i)));
      }
#pragma GCC unroll 8
      for (std::size_t p = 0; p < Pixels; ++p) {
        const __m256i source = two_of(at[p]);
#pragma GCC unroll 2
        for (std::size_t j = 0; j < Halves; ++j) {
          add_products(made[p * Halves + j], source, factors[j]);
        }
      }
      forget();
#pragma GCC unroll 2
      for (std::size_t j = 0; j < Halves; ++j) {
        factors[j] = odd_of(load(weights + j * sizeof(__m256i)));
      }
#pragma GCC unroll 8
      for (std::size_t p = 0; p < Pixels; ++p) {
        const __m256i source = two_of(at[p] + sizeof(std::int32_t));
#pragma GCC unroll 2
        for (std::size_t j = 0; j < Halves; ++j) {
          add_products(made[p * Halves + j], source, factors[j]);
        }
      }
      from += kInt8Quad * 2;
      weights += kQuadBytes;
    } while (from < end);
  }
  const Limits limits(given.store);
  __m256 scales[Halves];
#pragma GCC unroll 2
  for (std::size_t j = 0; j < Halves; ++j) {
    scales[j] = _mm256_loadu_ps(given.scales + j * kLanes);
  }
  if (given.may_overflow) {
#pragma GCC unroll 12
    for (std::size_t v = 0; v < kCount; ++v) {
      made[v] = scaled<true>(made[v], scales[v % Halves], limits);
    }
  } else {
#pragma GCC unroll 12
    for (std::size_t v = 0; v < kCount; ++v) {
      made[v] = scaled<false>(made[v], scales[v % Halves], limits);
    }
  }
  std::uint8_t* to = given.to + pixel * given.step_to;
  constexpr std::size_t kWidth = Halves * kLanes;
  const bool is_dense = given.step_to == kWidth && given.channels == kWidth;
#pragma GCC unroll 3
  for (std::size_t v = 0; v < kCount; v += 4) {
    constexpr std::size_t kLast = kCount - 1;
    const __m256i bytes =
        packed(made[v], made[v + 1 < kLast ? v + 1 : kLast], made[v + 2 < kLast ? v + 2 : kLast],
               made[v + 3 < kLast ? v + 3 : kLast], limits);
    if (is_dense && v + 4 <= kCount) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + v * kLanes), bytes);
      continue;
    }
    __m128i parts[2] = {_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1)};
#pragma GCC unroll 4
    for (std::size_t i = 0; i < 4; i += Halves) {
      if (v + i < kCount) {
        __m128i part = parts[i / 2];
        if (i % 2 != 0) {
          part = _mm_srli_si128(part, kLanes);
        }
        store_some(part, given.channels, to + (v + i) / Halves * given.step_to);
      }
    }
  }
}

template <std::size_t Halves, std::size_t... Less>
constexpr std::array<MakeInt8Tile, sizeof...(Less)> tiles(std::index_sequence<Less...>) {
  return {make_tile<Less + 1, Halves>...};
}

constexpr auto kTilesOfHalf = tiles<1>(std::make_index_sequence<kInt8PixelsOfHalf>());
constexpr auto kTilesOfWhole = tiles<2>(std::make_index_sequence<kInt8PixelsOfWidened>());

}  // namespace

const MakeInt8Tile* int8_tiles_for_avx2(std::size_t channels) {
  if (vectors() == Vectors::any) {
    return nullptr;
  }
  return channels <= kLanes ? kTilesOfHalf.data() : kTilesOfWhole.data();
}

}  // namespace arenite

#else

namespace arenite {

const MakeInt8Tile* int8_tiles_for_avx2(std::size_t) { return nullptr; }

}  // namespace arenite

#endif
