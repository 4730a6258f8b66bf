// Convolutions of 8-bit integers for x86-64 with AVX2, by products of 16-bit integers.
#include "kernels/processor.hpp"

#if defined(ARENITE_X86)

#define ARENITE_FOR_VECTORS ARENITE_FOR_AVX2
#include "kernels/convolution/depthwise_int8_maker.hpp"
#include "kernels/convolution/int8_tile_maker.hpp"

namespace arenite {

namespace {

ARENITE_FOR_AVX2 void write_words(__m256i bytes, std::uint8_t* to) {
  const __m256i even = _mm256_and_si256(bytes, _mm256_set1_epi16(0xff));
  const __m256i odd = _mm256_srli_epi16(bytes, 8);
  const __m256i low = _mm256_unpacklo_epi32(even, odd);
  const __m256i high = _mm256_unpackhi_epi32(even, odd);
  Avx2::store(_mm256_permute2x128_si256(low, high, 0x20), to);
  Avx2::store(_mm256_permute2x128_si256(low, high, 0x31), to + sizeof low);
}

// As bytes, or as 16-bit integers.
template <std::size_t ElementBytes>
ARENITE_FOR_AVX2 void copy_as(const std::uint8_t* from, std::size_t count, std::uint8_t flip,
                              std::uint8_t* to) {
  constexpr std::size_t kVector = sizeof(__m256i);
  const __m256i flips = _mm256_set1_epi8(static_cast<char>(flip));
  const auto write = [=](const std::uint8_t* bytes, std::size_t i) ARENITE_FOR_AVX2 {
    const __m256i flipped = _mm256_xor_si256(Avx2::load(bytes), flips);
    if constexpr (ElementBytes == 1) {
      Avx2::store(flipped, to + i);
    } else {
      write_words(flipped, to + i * ElementBytes);
    }
  };
  if (count < kVector) {
    alignas(kVector) std::uint8_t bytes[kVector] = {};
    std::memcpy(bytes, from, count);
    write(bytes, 0);
    return;
  }
  std::size_t i = 0;
  for (; i + kVector <= count; i += kVector) { write(from + i, i); }
  if (i < count) {  // the last bytes twice, so that quads stay whole
    write(from + count - kVector, count - kVector);
  }
}

ARENITE_FOR_AVX2 void fill(std::uint16_t pattern, std::size_t bytes, std::uint8_t* to) {
  for (std::size_t i = 0; i < bytes; i += sizeof(__m256i)) {
    Avx2::store(Avx2::all_words(pattern), to + i);
  }
}

ARENITE_FOR_AVX2 void gather(const Int8Gathering& given) { gather_runs(given); }

ARENITE_FOR_AVX2 void finish(const Int8Finish& given) { finish_sums(given); }

ARENITE_FOR_AVX2 std::uint32_t add_up(const std::uint8_t* from, std::size_t quads) {
  constexpr std::size_t kQuads = sizeof(__m256i) / Avx2::kQuadBytes;
  const __m256i ones = Avx2::all_words(1);
  __m256i sums = _mm256_setzero_si256();
  for (; quads >= kQuads; quads -= kQuads) {
    sums = _mm256_add_epi32(sums, _mm256_madd_epi16(Avx2::load(from), ones));
    from += sizeof(__m256i);
  }
  __m128i rest = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
  for (; quads > 0; --quads) {
    const __m128i quad = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
    rest = _mm_add_epi32(rest, _mm_madd_epi16(quad, _mm256_castsi256_si128(ones)));
    from += Avx2::kQuadBytes;
  }
  rest = _mm_add_epi32(rest, _mm_unpackhi_epi64(rest, rest));
  rest = _mm_add_epi32(rest, _mm_shuffle_epi32(rest, 1));
  return static_cast<std::uint32_t>(_mm_cvtsi128_si32(rest));
}

// What kernels of 8 sums a vector share, for any number of channels.
struct Pairs : Avx2 {
  static constexpr std::size_t kRows = 2;

  ARENITE_FOR_AVX2 static __m256i ones() { return all_words(1); }
  ARENITE_FOR_AVX2 static __m256i exclusive_or(__m256i a, __m256i b) {
    return _mm256_xor_si256(a, b);
  }
  ARENITE_FOR_AVX2 static __m128i exclusive_or(__m128i a, __m128i b) { return _mm_xor_si128(a, b); }
  // The source may stay in memory.
  ARENITE_FOR_AVX2 ARENITE_INLINE static void add_products(__m256i& sums, __m256i source,
                                                           __m256i weights) {
    __m256i products;
    asm("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0"
        : "+x"(sums), "=&x"(products)
        : "x"(weights), "xm"(source));
  }
  // Two vectors of scaled sums as 16 bits, within the bounds of a store.
  template <typename Limits>
  ARENITE_FOR_AVX2 static __m256i words(__m256i a, __m256i b, const Limits& limits) {
    const __m256i sums = add_words(pack_words(a, b), limits.zero_points);
    return clamp_words(sums, limits.min, limits.max);
  }
  template <typename Limits>
  ARENITE_FOR_AVX2 static __m128i narrow(__m128i a, __m128i b, const Limits& limits) {
    return limits.is_unsigned ? _mm_packus_epi16(a, b) : _mm_packs_epi16(a, b);
  }
  // Weights of two rows in 16 bits, above their zero point.
  ARENITE_FOR_AVX2 static __m256i above(__m256i weights, std::int32_t zero) {
    return _mm256_sub_epi16(weights, all_words(zero));
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
  ARENITE_FOR_AVX2 static __m256i load_masked(std::uint64_t, const void* from) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(from));
  }
  ARENITE_FOR_AVX2 static void store_masked(std::uint64_t, void* to, __m256i a) {
    _mm256_storeu_si256(static_cast<__m256i*>(to), a);
  }
  ARENITE_FOR_AVX2 static void interleave_words(__m256i low_a, __m256i low_b, __m256i high_a,
                                                __m256i high_b, void* to) {
    auto* vectors = static_cast<__m256i*>(to);
    store(_mm256_unpacklo_epi16(low_a, low_b), vectors);
    store(_mm256_unpackhi_epi16(low_a, low_b), vectors + 1);
    store(_mm256_unpacklo_epi16(high_a, high_b), vectors + 2);
    store(_mm256_unpackhi_epi16(high_a, high_b), vectors + 3);
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
  template <typename Limits>
  ARENITE_FOR_AVX2 static __m256i bytes_of(const __m256i (&sums)[kSums], const Limits& limits) {
    return narrowed(sums[0], sums[1], sums[2], sums[3], limits);
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
  ARENITE_FOR_AVX2 static __m128i load_masked(std::uint64_t, const void* from) {
    return _mm_loadu_si128(static_cast<const __m128i*>(from));
  }
  ARENITE_FOR_AVX2 static void store_masked(std::uint64_t, void* to, __m128i a) {
    _mm_storeu_si128(static_cast<__m128i*>(to), a);
  }
  ARENITE_FOR_AVX2 static void interleave_words(__m256i a, __m256i b, void* to) {
    auto* vectors = static_cast<__m256i*>(to);
    store(_mm256_unpacklo_epi16(a, b), vectors);
    store(_mm256_unpackhi_epi16(a, b), vectors + 1);
  }
  ARENITE_FOR_AVX2 static void interleave(const __m128i (&rows)[kRows], void* to) {
    interleave_words(_mm256_cvtepu8_epi16(rows[0]), _mm256_cvtepu8_epi16(rows[1]), to);
  }
  ARENITE_FOR_AVX2 static void interleave_weights(const __m128i (&rows)[kRows], std::int32_t zero,
                                                  void* to) {
    interleave_words(above(_mm256_cvtepi8_epi16(rows[0]), zero),
                     above(_mm256_cvtepi8_epi16(rows[1]), zero), to);
  }
  template <typename Limits>
  ARENITE_FOR_AVX2 static __m128i bytes_of(const __m256i (&sums)[kSums], const Limits& limits) {
    const __m256i a = words(sums[0], sums[1], limits);
    return narrow(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1), limits);
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
  ARENITE_FOR_AVX2 static __m128i load_masked(std::uint64_t, const void* from) {
    return _mm_loadl_epi64(static_cast<const __m128i*>(from));
  }
  ARENITE_FOR_AVX2 static void store_masked(std::uint64_t, void* to, __m128i a) {
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
  template <typename Limits>
  ARENITE_FOR_AVX2 static __m128i bytes_of(const __m256i (&sums)[kSums], const Limits& limits) {
    const __m256i a = words(sums[0], sums[0], limits);
    const __m128i ordered =
        _mm_unpacklo_epi64(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    return narrow(ordered, ordered, limits);
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
void make_depthwise(const Int8DepthwiseRows& given) {
  std::size_t first = 0;
  make_whole<OfThirtyTwo>(given, first);
  make_whole<OfSixteen>(given, first);
  make_whole<OfEight>(given, first);
  if (first < given.num_channels) {
    int8_depthwise_for_any().make(given.part(first, given.num_channels - first));
  }
}

constexpr Int8DepthwiseKernel kDepthwise{OfThirtyTwo::kChannels, make_depthwise};

}  // namespace

const Int8DepthwiseKernel* int8_depthwise_for_avx2(const Int8DepthwiseRows& rows) {
  const bool fits = rows.multiplier() == 1 && Sizes<OfThirtyTwo>::fits(rows.convolution.window);
  return vectors() != Vectors::any && fits ? &kDepthwise : nullptr;
}

const Int8Kernel& int8_kernel_for_avx2() {
  static const Int8Kernel kernel{false,
                                 2,
                                 tiles_of<Avx2, 1, 8>(),
                                 tiles_of<Avx2, 2, 6>(),
                                 copy_as<1>,
                                 copy_as<2>,
                                 fill,
                                 gather,
                                 add_up,
                                 nullptr,
                                 finish};
  return kernel;
}

}  // namespace arenite

#endif
