#include "requantise.hpp"

#include <algorithm>

#include "kernels/processor.hpp"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#if !defined(__clang__)
// The intrinsics of GCC 12 read what they then do not use.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#endif

namespace arenite {

namespace {

#define ARENITE_INLINE __attribute__((always_inline)) inline

std::int32_t wrapped_sum(std::int32_t a, std::int32_t b) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
}

ARENITE_INLINE void to_nearest(const QuantisedStore& store, std::size_t channel,
                               const std::int32_t* sums, std::int32_t addend, std::size_t count,
                               std::uint8_t* to) {
  // Adding and taking away this leaves the nearest integer, of two equally near the even one.
  constexpr float kRounder = 12'582'912.0f;
  const float* scales = store.scales + channel;
  const auto low = static_cast<float>(store.min - store.zero_point);
  const auto high = static_cast<float>(store.max - store.zero_point);
  const std::int32_t zero_point = store.zero_point;
  for (std::size_t i = 0; i < count; ++i) {
    // Between the product and the sum lies the clamp: nothing can be rounded once for both.
    const float scaled = static_cast<float>(wrapped_sum(sums[i], addend)) * scales[i];
    const float kept = std::min(std::max(scaled, low), high);
    to[i] = static_cast<std::uint8_t>(static_cast<std::int32_t>((kept + kRounder) - kRounder) +
                                      zero_point);
  }
}

// As TensorFlow Lite's MultiplyByQuantizedMultiplier: the upper half of twice the product is
// rounded with halves up, what is shifted out of it with halves away from zero.
ARENITE_INLINE void by_fixed_point(const QuantisedStore& store, std::size_t channel,
                                   const std::int32_t* sums, std::int32_t addend, std::size_t count,
                                   std::uint8_t* to) {
  const std::int32_t* multipliers = store.multipliers + channel;
  const std::int32_t* shifts = store.shifts + channel;
  const std::int32_t zero_point = store.zero_point;
  const std::int32_t low = store.min - zero_point;
  const std::int32_t high = store.max - zero_point;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int32_t left = std::max(shifts[i], 0);
    const std::int32_t right = std::max(-shifts[i], 0);
    const auto shifted =
        static_cast<std::int32_t>(static_cast<std::uint32_t>(wrapped_sum(sums[i], addend)) << left);
    const auto product = static_cast<std::int32_t>(
        (std::int64_t{shifted} * multipliers[i] + (std::int64_t{1} << 30)) >> 31);
    const auto mask = static_cast<std::int32_t>((std::uint32_t{1} << right) - 1);
    const std::int32_t half = (mask >> 1) + (product < 0 ? 1 : 0);
    const std::int32_t scaled = (product >> right) + ((product & mask) > half ? 1 : 0);
    to[i] = static_cast<std::uint8_t>(std::min(std::max(scaled, low), high) + zero_point);
  }
}

ARENITE_INLINE void requantise(const QuantisedStore& store, std::size_t channel,
                               const std::int32_t* sums, std::int32_t addend, std::size_t count,
                               void* to) {
  auto* bytes = static_cast<std::uint8_t*>(to);
  if (store.rounding == Rounding::nearest_even) {
    to_nearest(store, channel, sums, addend, count, bytes);
  } else {
    by_fixed_point(store, channel, sums, addend, count, bytes);
  }
}

void for_any(const QuantisedStore& store, std::size_t channel, const std::int32_t* sums,
             std::int32_t addend, std::size_t count, void* to) {
  requantise(store, channel, sums, addend, count, to);
}

ARENITE_FOR_AVX2 void for_avx2(const QuantisedStore& store, std::size_t channel,
                               const std::int32_t* sums, std::int32_t addend, std::size_t count,
                               void* to) {
  requantise(store, channel, sums, addend, count, to);
}

#if defined(__x86_64__) && defined(__GNUC__)
// As `to_nearest`, sixteen sums a vector. What is too low becomes the lowest integer.
ARENITE_FOR_AVX512 __m512i sixteen_to_nearest(const float* scales, const std::int32_t* sums,
                                              __m512i addends, __m512 high, __mmask16 mask) {
  const __m512i sum = _mm512_add_epi32(_mm512_maskz_loadu_epi32(mask, sums), addends);
  const __m512 scaled = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), _mm512_maskz_loadu_ps(mask, scales));
  return _mm512_cvtps_epi32(_mm512_min_ps(scaled, high));
}

ARENITE_FOR_AVX512 void for_avx512(const QuantisedStore& store, std::size_t channel,
                                   const std::int32_t* sums, std::int32_t addend, std::size_t count,
                                   void* to) {
  if (store.rounding != Rounding::nearest_even) {
    requantise(store, channel, sums, addend, count, to);
    return;
  }
  const float* scales = store.scales + channel;
  const __m512i addends = _mm512_set1_epi32(addend);
  const __m512 high = _mm512_set1_ps(static_cast<float>(store.max - store.zero_point));
  auto* bytes = static_cast<std::uint8_t*>(to);
  // Packing takes turns among four lanes of each vector; this undoes it.
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m512i zero_points = _mm512_set1_epi16(static_cast<short>(store.zero_point));
  const __m512i min = _mm512_set1_epi16(static_cast<short>(store.min));
  const __m512i max = _mm512_set1_epi16(static_cast<short>(store.max));
  for (; count > 16; bytes += 64, scales += 64, sums += 64) {
    const std::size_t done = std::min<std::size_t>(count, 64);
    const __mmask64 mask = ~std::uint64_t{0} >> (64 - done);
    __m512i made[4];
#pragma GCC unroll 4
    for (std::size_t i = 0; i < 4; ++i) {
      made[i] = sixteen_to_nearest(scales + 16 * i, sums + 16 * i, addends, high,
                                   static_cast<__mmask16>(mask >> (16 * i)));
    }
    __m512i a = _mm512_adds_epi16(_mm512_packs_epi32(made[0], made[1]), zero_points);
    __m512i b = _mm512_adds_epi16(_mm512_packs_epi32(made[2], made[3]), zero_points);
    a = _mm512_min_epi16(_mm512_max_epi16(a, min), max);
    b = _mm512_min_epi16(_mm512_max_epi16(b, min), max);
    const __m512i packed = store.max > 127 ? _mm512_packus_epi16(a, b) : _mm512_packs_epi16(a, b);
    _mm512_mask_storeu_epi8(bytes, mask, _mm512_permutexvar_epi32(order, packed));
    if (done == count) {
      return;
    }
    count -= done;
  }
  if (count > 0) {
    const auto mask = static_cast<__mmask16>(0xffffu >> (16 - count));
    const __m512i made = sixteen_to_nearest(scales, sums, addends, high, mask);
    const __m512i lowest = _mm512_set1_epi32(store.min - store.zero_point);
    const __m512i moved =
        _mm512_add_epi32(_mm512_max_epi32(made, lowest), _mm512_set1_epi32(store.zero_point));
    _mm512_mask_cvtepi32_storeu_epi8(bytes, mask, moved);
  }
}
#else
constexpr Requantise for_avx512 = for_any;
#endif

}  // namespace

Requantise find_requantise() {
  switch (vectors()) {
    case Vectors::avx512:
      return for_avx512;
    case Vectors::avx2:
      return for_avx2;
    default:
      return for_any;
  }
}

}  // namespace arenite
