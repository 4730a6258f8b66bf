// Depthwise convolutions of 8-bit integers for x86-64 with sums of two products of 16 bits.
#include "kernels/processor.hpp"
#include "kernels/x86_intrinsics.hpp"

#if defined(__x86_64__) && defined(__GNUC__)

#define ARENITE_FOR_VECTORS ARENITE_FOR_AVX2
#include "kernels/convolution/depthwise_int8_maker.hpp"

namespace arenite {

namespace {

// What vectors of 8 sums have in common, for whichever number of channels.
struct Pairs {
  using Vector = __m256i;
  static constexpr std::size_t kRows = 2;

  ARENITE_FOR_AVX2 static __m256i load(const void* from) {
    return _mm256_load_si256(static_cast<const __m256i*>(from));
  }
  ARENITE_FOR_AVX2 static void store(void* to, __m256i a) {
    _mm256_store_si256(static_cast<__m256i*>(to), a);
  }
  ARENITE_FOR_AVX2 static __m256i ones() { return _mm256_set1_epi16(1); }
  ARENITE_FOR_AVX2 static __m256i exclusive_or(__m256i a, __m256i b) {
    return _mm256_xor_si256(a, b);
  }
  ARENITE_FOR_AVX2 static __m128i exclusive_or(__m128i a, __m128i b) { return _mm_xor_si128(a, b); }
  ARENITE_FOR_AVX2 static __m256i add_products(__m256i sums, __m256i source, __m256i weights) {
    __m256i products;
    asm("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0"
        : "+x"(sums), "=&x"(products)
        : "x"(weights), "xm"(source));
    return sums;
  }
  // What is too low becomes the lowest integer, and saturates.
  ARENITE_FOR_AVX2 static __m256i scale(__m256i sums, const float* scales, float high) {
    const auto scaled = _mm256_mul_ps(_mm256_cvtepi32_ps(sums), _mm256_load_ps(scales));
    return _mm256_cvtps_epi32(_mm256_min_ps(scaled, _mm256_set1_ps(high)));
  }
  // Two vectors of scaled sums as 16 bits, within the limits of what is stored.
  ARENITE_FOR_AVX2 static __m256i words(__m256i a, __m256i b, const QuantisedStore& store) {
    const auto zero_point = _mm256_set1_epi16(static_cast<short>(store.zero_point));
    const auto min = _mm256_set1_epi16(static_cast<short>(store.min));
    const auto max = _mm256_set1_epi16(static_cast<short>(store.max));
    const __m256i sums = _mm256_adds_epi16(_mm256_packs_epi32(a, b), zero_point);
    return _mm256_min_epi16(_mm256_max_epi16(sums, min), max);
  }
  ARENITE_FOR_AVX2 static __m128i bytes_of(__m128i a, __m128i b, const QuantisedStore& store) {
    return store.max > 127 ? _mm_packus_epi16(a, b) : _mm_packs_epi16(a, b);
  }
  // Weights of two rows in 16 bits, above their zero point.
  ARENITE_FOR_AVX2 static __m256i above(__m256i weights, std::int32_t zero) {
    return _mm256_sub_epi16(weights, _mm256_set1_epi16(static_cast<short>(zero)));
  }
};

struct OfThirtyTwo : Pairs {
  using Row = __m256i;
  static constexpr std::size_t kChannels = 32;
  static constexpr std::size_t kSums = 4;
  static constexpr std::size_t kPixels = 3;

  static std::size_t channel_of(std::size_t vector, std::size_t element) {
    return element / 4 * 16 + vector * 4 + element % 4;
  }
  ARENITE_FOR_AVX2 static __m256i bytes(std::int32_t a) {
    return _mm256_set1_epi8(static_cast<char>(a));
  }
  ARENITE_FOR_AVX2 static __m256i load_some(std::uint64_t, const void* from) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(from));
  }
  ARENITE_FOR_AVX2 static void store_some(std::uint64_t, void* to, __m256i a) {
    _mm256_storeu_si256(static_cast<__m256i*>(to), a);
  }
  ARENITE_FOR_AVX2 static void interleave_words(__m256i low_a, __m256i low_b, __m256i high_a,
                                                __m256i high_b, void* to) {
    auto* vectors = static_cast<__m256i*>(to);
    store(vectors, _mm256_unpacklo_epi16(low_a, low_b));
    store(vectors + 1, _mm256_unpackhi_epi16(low_a, low_b));
    store(vectors + 2, _mm256_unpacklo_epi16(high_a, high_b));
    store(vectors + 3, _mm256_unpackhi_epi16(high_a, high_b));
  }
  ARENITE_FOR_AVX2 static void interleave(const __m256i (&rows)[kRows], void* to) {
    const __m256i none = _mm256_setzero_si256();
    interleave_words(_mm256_unpacklo_epi8(rows[0], none), _mm256_unpacklo_epi8(rows[1], none),
                     _mm256_unpackhi_epi8(rows[0], none), _mm256_unpackhi_epi8(rows[1], none), to);
  }
  ARENITE_FOR_AVX2 static void interleave_weights(const __m256i (&rows)[kRows], std::int32_t zero,
                                                  void* to) {
    const auto low = [zero](__m256i a) ARENITE_FOR_AVX2 {
      return above(_mm256_srai_epi16(_mm256_unpacklo_epi8(a, a), 8), zero);
    };
    const auto high = [zero](__m256i a) ARENITE_FOR_AVX2 {
      return above(_mm256_srai_epi16(_mm256_unpackhi_epi8(a, a), 8), zero);
    };
    interleave_words(low(rows[0]), low(rows[1]), high(rows[0]), high(rows[1]), to);
  }
  ARENITE_FOR_AVX2 static __m256i pack(const __m256i (&made)[kSums], const QuantisedStore& store) {
    const __m256i a = words(made[0], made[1], store);
    const __m256i b = words(made[2], made[3], store);
    return store.max > 127 ? _mm256_packus_epi16(a, b) : _mm256_packs_epi16(a, b);
  }
};

struct OfSixteen : Pairs {
  using Row = __m128i;
  static constexpr std::size_t kChannels = 16;
  static constexpr std::size_t kSums = 2;
  static constexpr std::size_t kPixels = 6;

  static std::size_t channel_of(std::size_t vector, std::size_t element) {
    return element / 4 * 8 + vector * 4 + element % 4;
  }
  ARENITE_FOR_AVX2 static __m128i bytes(std::int32_t a) {
    return _mm_set1_epi8(static_cast<char>(a));
  }
  ARENITE_FOR_AVX2 static __m128i load_some(std::uint64_t, const void* from) {
    return _mm_loadu_si128(static_cast<const __m128i*>(from));
  }
  ARENITE_FOR_AVX2 static void store_some(std::uint64_t, void* to, __m128i a) {
    _mm_storeu_si128(static_cast<__m128i*>(to), a);
  }
  ARENITE_FOR_AVX2 static void interleave_words(__m256i a, __m256i b, void* to) {
    auto* vectors = static_cast<__m256i*>(to);
    store(vectors, _mm256_unpacklo_epi16(a, b));
    store(vectors + 1, _mm256_unpackhi_epi16(a, b));
  }
  ARENITE_FOR_AVX2 static void interleave(const __m128i (&rows)[kRows], void* to) {
    interleave_words(_mm256_cvtepu8_epi16(rows[0]), _mm256_cvtepu8_epi16(rows[1]), to);
  }
  ARENITE_FOR_AVX2 static void interleave_weights(const __m128i (&rows)[kRows], std::int32_t zero,
                                                  void* to) {
    interleave_words(above(_mm256_cvtepi8_epi16(rows[0]), zero),
                     above(_mm256_cvtepi8_epi16(rows[1]), zero), to);
  }
  ARENITE_FOR_AVX2 static __m128i pack(const __m256i (&made)[kSums], const QuantisedStore& store) {
    const __m256i a = words(made[0], made[1], store);
    return bytes_of(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1), store);
  }
};

struct OfEight : Pairs {
  using Row = __m128i;
  static constexpr std::size_t kChannels = 8;
  static constexpr std::size_t kSums = 1;
  static constexpr std::size_t kPixels = 8;

  static std::size_t channel_of(std::size_t, std::size_t element) { return element; }
  ARENITE_FOR_AVX2 static __m128i bytes(std::int32_t a) {
    return _mm_set1_epi8(static_cast<char>(a));
  }
  ARENITE_FOR_AVX2 static __m128i load_some(std::uint64_t, const void* from) {
    return _mm_loadl_epi64(static_cast<const __m128i*>(from));
  }
  ARENITE_FOR_AVX2 static void store_some(std::uint64_t, void* to, __m128i a) {
    _mm_storel_epi64(static_cast<__m128i*>(to), a);
  }
  ARENITE_FOR_AVX2 static void interleave_words(__m128i a, __m128i b, void* to) {
    auto* vectors = static_cast<__m128i*>(to);
    _mm_store_si128(vectors, _mm_unpacklo_epi16(a, b));
    _mm_store_si128(vectors + 1, _mm_unpackhi_epi16(a, b));
  }
  ARENITE_FOR_AVX2 static void interleave(const __m128i (&rows)[kRows], void* to) {
    interleave_words(_mm_cvtepu8_epi16(rows[0]), _mm_cvtepu8_epi16(rows[1]), to);
  }
  ARENITE_FOR_AVX2 static void interleave_weights(const __m128i (&rows)[kRows], std::int32_t zero,
                                                  void* to) {
    const __m128i zeros = _mm_set1_epi16(static_cast<short>(zero));
    interleave_words(_mm_sub_epi16(_mm_cvtepi8_epi16(rows[0]), zeros),
                     _mm_sub_epi16(_mm_cvtepi8_epi16(rows[1]), zeros), to);
  }
  ARENITE_FOR_AVX2 static __m128i pack(const __m256i (&made)[kSums], const QuantisedStore& store) {
    const __m256i a = words(made[0], made[0], store);
    const __m128i in_order =
        _mm_unpacklo_epi64(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    return bytes_of(in_order, in_order, store);
  }
};

// Of the channels given those from `first` on, as many as whole vectors have.
template <typename Vectors>
void make_whole(const Int8DepthwiseRows& given, std::size_t& first) {
  while (first + Vectors::kChannels <= given.num_channels) {
    make_with<Vectors>(given.part(first, Vectors::kChannels));
    first += Vectors::kChannels;
  }
}

// Whole vectors, and what is left of the channels as any processor does it.
void make_for_avx2(const Int8DepthwiseRows& given) {
  std::size_t first = 0;
  make_whole<OfThirtyTwo>(given, first);
  make_whole<OfSixteen>(given, first);
  make_whole<OfEight>(given, first);
  if (first < given.num_channels) {
    int8_depthwise_for_any().make(given.part(first, given.num_channels - first));
  }
}

constexpr Int8DepthwiseKernel kAvx2{OfThirtyTwo::kChannels, make_for_avx2};

}  // namespace

const Int8DepthwiseKernel* int8_depthwise_for_avx2(const Int8DepthwiseRows& rows) {
  const bool fits = rows.multiplier() == 1 && Sizes<OfThirtyTwo>::fits(rows.convolution.window);
  return vectors() != Vectors::any && fits ? &kAvx2 : nullptr;
}

}  // namespace arenite

#else

#include "kernels/convolution/depthwise_int8_rows.hpp"

namespace arenite {

const Int8DepthwiseKernel* int8_depthwise_for_avx2(const Int8DepthwiseRows&) { return nullptr; }

}  // namespace arenite

#endif
