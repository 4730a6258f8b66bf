#include "requantise.hpp"

#include <algorithm>

#include "kernels/processor.hpp"
#include "kernels/x86_intrinsics.hpp"

namespace arenite {

namespace {

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
    const float kept = std::min(std::max(low, scaled), high);  // NaN becomes the lowest
    to[i] = static_cast<std::uint8_t>(static_cast<std::int32_t>((kept + kRounder) - kRounder) +
                                      zero_point);
  }
}

ARENITE_INLINE void requantise(const QuantisedStore& store, const Requantised& work) {
  for (std::size_t p = 0; p < work.pixels; ++p) {
    const std::int32_t* sums = work.sums + p * work.sum_stride;
    const std::int32_t addend = work.addends == nullptr ? 0 : work.addends[p];
    std::uint8_t* to = work.result + p * work.pixel_stride;
    to_nearest(store, work.channel, sums, addend, work.channels, to);
  }
}

void for_any(const QuantisedStore& store, const Requantised& work) { requantise(store, work); }

ARENITE_FOR_AVX2 void for_avx2(const QuantisedStore& store, const Requantised& work) {
  requantise(store, work);
}

#if defined(__x86_64__) && defined(__GNUC__)
// As `to_nearest`, sixteen sums a vector. What is too low becomes the lowest integer.
ARENITE_FOR_AVX512 ARENITE_INLINE __m512i sixteen_to_nearest(__m512 scales,
                                                             const std::int32_t* sums,
                                                             __m512i addends, __m512 high,
                                                             __mmask16 mask) {
  const __m512i sum = _mm512_add_epi32(_mm512_maskz_loadu_epi32(mask, sums), addends);
  return _mm512_cvtps_epi32(_mm512_min_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(sum), scales), high));
}

// Up to 64 channels of all pixels.
template <bool IsUnsigned>
ARENITE_FOR_AVX512 void four_to_nearest(const QuantisedStore& store, const Requantised& work,
                                        std::size_t first, std::size_t count) {
  const __m512 high = _mm512_set1_ps(static_cast<float>(store.max - store.zero_point));
  const __m512i zero_points = _mm512_set1_epi16(static_cast<short>(store.zero_point));
  const __m512i min = _mm512_set1_epi16(static_cast<short>(store.min));
  const __m512i max = _mm512_set1_epi16(static_cast<short>(store.max));
  // Packing takes turns among four lanes of each vector; this undoes it.
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __mmask64 mask = ~std::uint64_t{0} >> (64 - count);
  __mmask16 masks[4];
  __m512 scales[4];
#pragma GCC unroll 4
  for (std::size_t i = 0; i < 4; ++i) {
    masks[i] = static_cast<__mmask16>(mask >> (16 * i));
    scales[i] = _mm512_maskz_loadu_ps(masks[i], store.scales + work.channel + first + 16 * i);
  }
  const std::int32_t* sums = work.sums + first;
  std::uint8_t* to = work.result + first;
  for (std::size_t p = 0; p < work.pixels; ++p) {
    const __m512i addends = _mm512_set1_epi32(work.addends == nullptr ? 0 : work.addends[p]);
    __m512i made[4];
#pragma GCC unroll 4
    for (std::size_t i = 0; i < 4; ++i) {
      made[i] = sixteen_to_nearest(scales[i], sums + 16 * i, addends, high, masks[i]);
    }
    __m512i a = _mm512_adds_epi16(_mm512_packs_epi32(made[0], made[1]), zero_points);
    __m512i b = _mm512_adds_epi16(_mm512_packs_epi32(made[2], made[3]), zero_points);
    a = _mm512_min_epi16(_mm512_max_epi16(a, min), max);
    b = _mm512_min_epi16(_mm512_max_epi16(b, min), max);
    const __m512i packed = IsUnsigned ? _mm512_packus_epi16(a, b) : _mm512_packs_epi16(a, b);
    _mm512_mask_storeu_epi8(to, mask, _mm512_permutexvar_epi32(order, packed));
    sums += work.sum_stride;
    to += work.pixel_stride;
  }
}

// Up to 32 channels of all pixels, in halves of which each is cut to bytes alone.
template <std::size_t Vectors>
ARENITE_FOR_AVX512 void some_to_nearest(const QuantisedStore& store, const Requantised& work,
                                        std::size_t first, std::size_t count) {
  const __m512 high = _mm512_set1_ps(static_cast<float>(store.max - store.zero_point));
  const __m512i low = _mm512_set1_epi32(store.min - store.zero_point);
  const __m512i zero_points = _mm512_set1_epi32(store.zero_point);
  const std::uint32_t mask = ~std::uint32_t{0} >> (32 - count);
  __mmask16 masks[Vectors];
  __m512 scales[Vectors];
#pragma GCC unroll 2
  for (std::size_t i = 0; i < Vectors; ++i) {
    masks[i] = static_cast<__mmask16>(mask >> (16 * i));
    scales[i] = _mm512_maskz_loadu_ps(masks[i], store.scales + work.channel + first + 16 * i);
  }
  const std::int32_t* sums = work.sums + first;
  std::uint8_t* to = work.result + first;
  for (std::size_t p = 0; p < work.pixels; ++p) {
    const __m512i addends = _mm512_set1_epi32(work.addends == nullptr ? 0 : work.addends[p]);
#pragma GCC unroll 2
    for (std::size_t i = 0; i < Vectors; ++i) {
      const __m512i made = _mm512_max_epi32(
          sixteen_to_nearest(scales[i], sums + 16 * i, addends, high, masks[i]), low);
      _mm512_mask_cvtepi32_storeu_epi8(to + 16 * i, masks[i], _mm512_add_epi32(made, zero_points));
    }
    sums += work.sum_stride;
    to += work.pixel_stride;
  }
}

ARENITE_FOR_AVX512 void for_avx512(const QuantisedStore& store, const Requantised& work) {
  for (std::size_t first = 0; first < work.channels; first += 64) {
    const std::size_t count = std::min<std::size_t>(64, work.channels - first);
    if (count <= 16) {
      some_to_nearest<1>(store, work, first, count);
    } else if (count <= 32) {
      some_to_nearest<2>(store, work, first, count);
    } else {
      (store.max > 127 ? four_to_nearest<true> : four_to_nearest<false>)(store, work, first, count);
    }
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
