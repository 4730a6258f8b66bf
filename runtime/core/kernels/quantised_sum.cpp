#include "kernels/quantised_sum.hpp"

#include <cstring>
#include <type_traits>

#include "kernels/processor.hpp"
#include "kernels/x86_intrinsics.hpp"

#if defined(__x86_64__) && defined(__GNUC__)

namespace arenite {

namespace {

constexpr std::size_t kVector = 64;

// A factor is 2^8 times its upper part and a lower part: either times a byte, and the sum of two
// such, is what vectors make of pairs of 16 bits.
constexpr int kPartBits = 8;
constexpr std::int32_t kLowPart = (1 << kPartBits) - 1;

// The constants of a sum, in vectors.
struct Constants {
  ARENITE_FOR_AVX512 explicit Constants(const QuantisedSum& sum)
      : low_parts(pairs(sum.factors[0] & kLowPart, sum.factors[1] & kLowPart)),
        high_parts(pairs(sum.factors[0] >> kPartBits, sum.factors[1] >> kPartBits)),
        bias(_mm512_set1_epi32(sum.bias)),
        shift(_mm_cvtsi32_si128(sum.shift)),
        zero_point(_mm512_set1_epi16(static_cast<short>(sum.zero_point))),
        min(_mm512_set1_epi8(static_cast<char>(sum.min))),
        max(_mm512_set1_epi8(static_cast<char>(sum.max))) {}

  ARENITE_FOR_AVX512 static __m512i pairs(std::int32_t one, std::int32_t other) {
    return _mm512_set1_epi32(static_cast<std::int32_t>(static_cast<std::uint32_t>(one & 0xffff) |
                                                       static_cast<std::uint32_t>(other) << 16));
  }

  __m512i low_parts;
  __m512i high_parts;
  __m512i bias;
  __m128i shift;
  __m512i zero_point;
  __m512i min;
  __m512i max;
};

template <typename T>
ARENITE_FOR_AVX512 __m512i load_words(const T* from) {
  const auto bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  return std::is_signed_v<T> ? _mm512_cvtepi8_epi16(bytes) : _mm512_cvtepu8_epi16(bytes);
}

ARENITE_FOR_AVX512 __m512i sums_of_pairs(__m512i pairs, const Constants& constants) {
  const __m512i low = _mm512_madd_epi16(pairs, constants.low_parts);
  const __m512i high = _mm512_slli_epi32(_mm512_madd_epi16(pairs, constants.high_parts), kPartBits);
  const __m512i sums = _mm512_add_epi32(_mm512_add_epi32(low, constants.bias), high);
  return _mm512_sra_epi32(sums, constants.shift);
}

// Half a vector of results, as words.
template <typename T>
ARENITE_FOR_AVX512 __m512i half_of_results(const T* one, const T* other,
                                           const Constants& constants) {
  const __m512i a = load_words(one);
  const __m512i b = load_words(other);
  const __m512i sums = _mm512_packs_epi32(sums_of_pairs(_mm512_unpacklo_epi16(a, b), constants),
                                          sums_of_pairs(_mm512_unpackhi_epi16(a, b), constants));
  return _mm512_adds_epi16(sums, constants.zero_point);
}

template <typename T>
ARENITE_FOR_AVX512 __m512i results(const T* one, const T* other, const Constants& constants) {
  const __m512i low = half_of_results(one, other, constants);
  const __m512i high = half_of_results(one + kVector / 2, other + kVector / 2, constants);
  __m512i bytes;
  if constexpr (std::is_signed_v<T>) {
    bytes = _mm512_max_epi8(_mm512_packs_epi16(low, high), constants.min);
    bytes = _mm512_min_epi8(bytes, constants.max);
  } else {
    bytes = _mm512_max_epu8(_mm512_packus_epi16(low, high), constants.min);
    bytes = _mm512_min_epu8(bytes, constants.max);
  }
  // Packing takes turns between the two; this undoes it.
  return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), bytes);
}

template <typename T>
ARENITE_FOR_AVX512 void add_for_avx512(const QuantisedSum& sum, const void* one, const void* other,
                                       void* target, std::size_t count) {
  const Constants constants(sum);
  const auto* a = static_cast<const T*>(one);
  const auto* b = static_cast<const T*>(other);
  auto* to = static_cast<T*>(target);
  std::size_t i = 0;
  for (; i + kVector <= count; i += kVector) {
    _mm512_storeu_si512(to + i, results(a + i, b + i, constants));
  }
  if (i < count) {
    T rest[2][kVector] = {};
    std::memcpy(rest[0], a + i, count - i);
    std::memcpy(rest[1], b + i, count - i);
    _mm512_storeu_si512(rest[0], results(rest[0], rest[1], constants));
    std::memcpy(to + i, rest[0], count - i);
  }
}

}  // namespace

template <typename T>
AddQuantised find_quantised_add(const QuantisedSum& sum) {
  for (const std::int32_t factor : sum.factors) {
    const std::int32_t part = factor >> kPartBits;
    if (part < -32768 || part > 32767) { return nullptr; }
  }
  return vectors() == Vectors::avx512 ? add_for_avx512<T> : nullptr;
}

#else

namespace arenite {

template <typename T>
AddQuantised find_quantised_add(const QuantisedSum&) {
  return nullptr;
}

#endif

template AddQuantised find_quantised_add<std::int8_t>(const QuantisedSum& sum);
template AddQuantised find_quantised_add<std::uint8_t>(const QuantisedSum& sum);

}  // namespace arenite
