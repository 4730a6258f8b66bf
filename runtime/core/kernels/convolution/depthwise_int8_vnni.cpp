// Depthwise convolutions for x86-64 with sums of four products of bytes.
#include "kernels/processor.hpp"
#include "kernels/x86_intrinsics.hpp"

#if defined(__x86_64__) && defined(__GNUC__)

#define ARENITE_FOR_VECTORS ARENITE_FOR_VNNI
#include "kernels/convolution/depthwise_int8_maker.hpp"

namespace arenite {

namespace {

// Interleaved as the processor does it, vector v has of each sixteen channels the four from 4 v on;
// so have the sums, and packing them to bytes puts them in order.
struct Quads {
  static constexpr std::size_t kRows = 4;
  static constexpr std::size_t kSums = 4;
  static constexpr std::size_t kPixels = 4;

  static std::size_t channel_of(std::size_t vector, std::size_t element) {
    return element / 4 * 16 + vector * 4 + element % 4;
  }
};

struct Wide : Quads {
  using Vector = __m512i;
  using Row = __m512i;
  static constexpr std::size_t kChannels = 64;

  ARENITE_FOR_VNNI static __m512i load(const void* from) {
    return _mm512_load_si512(static_cast<const __m512i*>(from));
  }
  ARENITE_FOR_VNNI static __m512i load_some(std::uint64_t mask, const void* from) {
    return _mm512_maskz_loadu_epi8(static_cast<__mmask64>(mask), from);
  }
  ARENITE_FOR_VNNI static void store(void* to, __m512i a) {
    _mm512_store_si512(static_cast<__m512i*>(to), a);
  }
  ARENITE_FOR_VNNI static void store_some(std::uint64_t mask, void* to, __m512i a) {
    _mm512_mask_storeu_epi8(to, static_cast<__mmask64>(mask), a);
  }
  ARENITE_FOR_VNNI static __m512i bytes(std::int32_t a) {
    return _mm512_set1_epi8(static_cast<char>(a));
  }
  ARENITE_FOR_VNNI static __m512i exclusive_or(__m512i a, __m512i b) {
    return _mm512_xor_si512(a, b);
  }
  ARENITE_FOR_VNNI static __m512i ones() { return bytes(1); }
  ARENITE_FOR_VNNI static void interleave(const __m512i (&rows)[kRows], void* to) {
    const __m512i low_ab = _mm512_unpacklo_epi8(rows[0], rows[1]);
    const __m512i low_cd = _mm512_unpacklo_epi8(rows[2], rows[3]);
    const __m512i high_ab = _mm512_unpackhi_epi8(rows[0], rows[1]);
    const __m512i high_cd = _mm512_unpackhi_epi8(rows[2], rows[3]);
    auto* vectors = static_cast<__m512i*>(to);
    store(vectors, _mm512_unpacklo_epi16(low_ab, low_cd));
    store(vectors + 1, _mm512_unpackhi_epi16(low_ab, low_cd));
    store(vectors + 2, _mm512_unpacklo_epi16(high_ab, high_cd));
    store(vectors + 3, _mm512_unpackhi_epi16(high_ab, high_cd));
  }
  // Of weights whose zero point is 0.
  ARENITE_FOR_VNNI static void interleave_weights(const __m512i (&rows)[kRows], std::int32_t,
                                                  void* to) {
    interleave(rows, to);
  }
  ARENITE_FOR_VNNI static __m512i add_products(__m512i sums, __m512i source, __m512i weights) {
    return _mm512_dpbusd_epi32(sums, source, weights);
  }
  // What is too low becomes the lowest integer, and saturates.
  ARENITE_FOR_VNNI static __m512i scale(__m512i sums, const float* scales, float high) {
    const auto scaled = _mm512_mul_ps(_mm512_cvtepi32_ps(sums), _mm512_load_ps(scales));
    return _mm512_cvtps_epi32(_mm512_min_ps(scaled, _mm512_set1_ps(high)));
  }
  ARENITE_FOR_VNNI static __m512i pack(const __m512i (&made)[kSums], const QuantisedStore& store) {
    const __m512i zero_point = _mm512_set1_epi16(static_cast<short>(store.zero_point));
    const __m512i a = _mm512_adds_epi16(_mm512_packs_epi32(made[0], made[1]), zero_point);
    const __m512i b = _mm512_adds_epi16(_mm512_packs_epi32(made[2], made[3]), zero_point);
    const __m512i min = bytes(store.min);
    const __m512i max = bytes(store.max);
    return store.max > 127 ? _mm512_min_epu8(_mm512_max_epu8(_mm512_packus_epi16(a, b), min), max)
                           : _mm512_min_epi8(_mm512_max_epi8(_mm512_packs_epi16(a, b), min), max);
  }
};

struct Narrow : Quads {
  using Vector = __m256i;
  using Row = __m256i;
  static constexpr std::size_t kChannels = 32;

  ARENITE_FOR_VNNI static __m256i load(const void* from) {
    return _mm256_load_si256(static_cast<const __m256i*>(from));
  }
  ARENITE_FOR_VNNI static __m256i load_some(std::uint64_t mask, const void* from) {
    return _mm256_maskz_loadu_epi8(static_cast<__mmask32>(mask), from);
  }
  ARENITE_FOR_VNNI static void store(void* to, __m256i a) {
    _mm256_store_si256(static_cast<__m256i*>(to), a);
  }
  ARENITE_FOR_VNNI static void store_some(std::uint64_t mask, void* to, __m256i a) {
    _mm256_mask_storeu_epi8(to, static_cast<__mmask32>(mask), a);
  }
  ARENITE_FOR_VNNI static __m256i bytes(std::int32_t a) {
    return _mm256_set1_epi8(static_cast<char>(a));
  }
  ARENITE_FOR_VNNI static __m256i exclusive_or(__m256i a, __m256i b) {
    return _mm256_xor_si256(a, b);
  }
  ARENITE_FOR_VNNI static __m256i ones() { return bytes(1); }
  ARENITE_FOR_VNNI static void interleave(const __m256i (&rows)[kRows], void* to) {
    const __m256i low_ab = _mm256_unpacklo_epi8(rows[0], rows[1]);
    const __m256i low_cd = _mm256_unpacklo_epi8(rows[2], rows[3]);
    const __m256i high_ab = _mm256_unpackhi_epi8(rows[0], rows[1]);
    const __m256i high_cd = _mm256_unpackhi_epi8(rows[2], rows[3]);
    auto* vectors = static_cast<__m256i*>(to);
    store(vectors, _mm256_unpacklo_epi16(low_ab, low_cd));
    store(vectors + 1, _mm256_unpackhi_epi16(low_ab, low_cd));
    store(vectors + 2, _mm256_unpacklo_epi16(high_ab, high_cd));
    store(vectors + 3, _mm256_unpackhi_epi16(high_ab, high_cd));
  }
  // Of weights whose zero point is 0.
  ARENITE_FOR_VNNI static void interleave_weights(const __m256i (&rows)[kRows], std::int32_t,
                                                  void* to) {
    interleave(rows, to);
  }
  ARENITE_FOR_VNNI static __m256i add_products(__m256i sums, __m256i source, __m256i weights) {
    return _mm256_dpbusd_epi32(sums, source, weights);
  }
  // What is too low becomes the lowest integer, and saturates.
  ARENITE_FOR_VNNI static __m256i scale(__m256i sums, const float* scales, float high) {
    const auto scaled = _mm256_mul_ps(_mm256_cvtepi32_ps(sums), _mm256_load_ps(scales));
    return _mm256_cvtps_epi32(_mm256_min_ps(scaled, _mm256_set1_ps(high)));
  }
  ARENITE_FOR_VNNI static __m256i pack(const __m256i (&made)[kSums], const QuantisedStore& store) {
    const __m256i zero_point = _mm256_set1_epi16(static_cast<short>(store.zero_point));
    const __m256i a = _mm256_adds_epi16(_mm256_packs_epi32(made[0], made[1]), zero_point);
    const __m256i b = _mm256_adds_epi16(_mm256_packs_epi32(made[2], made[3]), zero_point);
    const __m256i min = bytes(store.min);
    const __m256i max = bytes(store.max);
    return store.max > 127 ? _mm256_min_epu8(_mm256_max_epu8(_mm256_packus_epi16(a, b), min), max)
                           : _mm256_min_epi8(_mm256_max_epi8(_mm256_packs_epi16(a, b), min), max);
  }
};

// Vectors of few channels are better filled by pairs.
void make_for_vnni(const Int8DepthwiseRows& given) {
  const bool is_few = given.num_channels == 8 || given.num_channels == 16;
  const auto* pairs = is_few ? int8_depthwise_for_avx2(given) : nullptr;
  if (pairs != nullptr) {
    pairs->make(given);
    return;
  }
  (given.num_channels > Narrow::kChannels ? make_with<Wide> : make_with<Narrow>)(given);
}

constexpr Int8DepthwiseKernel kVnni{Wide::kChannels, make_for_vnni};

}  // namespace

const Int8DepthwiseKernel* int8_depthwise_for_vnni(const Int8DepthwiseRows& rows) {
  const auto& convolution = rows.convolution;
  const bool fits = rows.multiplier() == 1 && convolution.filter_zero_point == 0 &&
                    Sizes<Wide>::fits(convolution.window);
  return has_dot_products() && fits ? &kVnni : nullptr;
}

}  // namespace arenite

#else

#include "kernels/convolution/depthwise_int8_rows.hpp"

namespace arenite {

const Int8DepthwiseKernel* int8_depthwise_for_vnni(const Int8DepthwiseRows&) { return nullptr; }

}  // namespace arenite

#endif
