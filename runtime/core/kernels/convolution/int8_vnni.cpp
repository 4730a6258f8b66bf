// Convolutions of 8-bit integers for x86-64 with dot products of four bytes (AVX-512 VNNI).
#include "kernels/processor.hpp"

#if defined(ARENITE_X86)

#define ARENITE_FOR_VECTORS ARENITE_FOR_VNNI
#include "kernels/convolution/depthwise_int8_maker.hpp"
#include "kernels/convolution/int8_tile_maker.hpp"

namespace arenite {

namespace {

ARENITE_FOR_VNNI void copy(const std::uint8_t* from, std::size_t count, std::uint8_t flip,
                           std::uint8_t* to) {
  const __m512i flips = _mm512_set1_epi8(static_cast<char>(flip));
  std::size_t i = 0;
  for (; i + kInt8Vector <= count; i += kInt8Vector) {
    _mm512_storeu_si512(to + i, _mm512_xor_si512(_mm512_loadu_si512(from + i), flips));
  }
  if (i < count) {
    const __mmask64 rest = (std::uint64_t{1} << (count - i)) - 1;
    _mm512_storeu_si512(to + i, _mm512_xor_si512(_mm512_maskz_loadu_epi8(rest, from + i), flips));
  }
}

ARENITE_FOR_VNNI void fill(std::uint16_t pattern, std::size_t bytes, std::uint8_t* to) {
  const __m512i patterns = _mm512_set1_epi16(static_cast<short>(pattern));
  for (std::size_t i = 0; i < bytes; i += kInt8Vector) { _mm512_storeu_si512(to + i, patterns); }
}

ARENITE_FOR_VNNI void gather(const Int8Gathering& given) { gather_runs(given); }

ARENITE_FOR_VNNI void finish(const Int8Finish& given) { finish_sums(given); }

ARENITE_FOR_VNNI std::uint32_t add_up(const std::uint8_t* from, std::size_t quads) {
  const __m512i ones = _mm512_set1_epi8(1);
  __m512i sums = _mm512_setzero_si512();
  constexpr std::size_t kQuads = kInt8Vector / kInt8Quad;
  for (; quads >= kQuads; quads -= kQuads) {
    sums = _mm512_dpbusd_epi32(sums, _mm512_loadu_si512(from), ones);
    from += kInt8Vector;
  }
  const auto rest = static_cast<__mmask16>((std::uint32_t{1} << quads) - 1);
  sums = _mm512_dpbusd_epi32(sums, _mm512_maskz_loadu_epi32(rest, from), ones);
  return static_cast<std::uint32_t>(_mm512_reduce_add_epi32(sums));
}

// Interleaved, vector v has four of each sixteen channels, from 4 v on; so have the sums. Packing
// puts them in order.
template <typename Vectors>
struct Quads : Vectors {
  static constexpr std::size_t kRows = 4;
  static constexpr std::size_t kSums = 4;
  static constexpr std::size_t kPixels = 4;

  static std::size_t channel_of(std::size_t vector, std::size_t element) {
    return element / 4 * 16 + vector * 4 + element % 4;
  }
  template <typename Vector, typename Limits>
  ARENITE_FOR_VNNI static Vector bytes_of(const Vector (&sums)[kSums], const Limits& limits) {
    return narrowed(sums[0], sums[1], sums[2], sums[3], limits);
  }
};

struct Wide : Quads<Vnni> {
  using Row = __m512i;
  static constexpr std::size_t kChannels = 64;

  ARENITE_FOR_VNNI static __m512i load_masked(std::uint64_t mask, const void* from) {
    return _mm512_maskz_loadu_epi8(static_cast<__mmask64>(mask), from);
  }
  ARENITE_FOR_VNNI static void store_masked(std::uint64_t mask, void* to, __m512i a) {
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
    store(_mm512_unpacklo_epi16(low_ab, low_cd), vectors);
    store(_mm512_unpackhi_epi16(low_ab, low_cd), vectors + 1);
    store(_mm512_unpacklo_epi16(high_ab, high_cd), vectors + 2);
    store(_mm512_unpackhi_epi16(high_ab, high_cd), vectors + 3);
  }
  // Of weights whose zero point is 0.
  ARENITE_FOR_VNNI static void interleave_weights(const __m512i (&rows)[kRows], std::int32_t,
                                                  void* to) {
    interleave(rows, to);
  }
};

struct Narrow : Quads<Avx2> {
  using Row = __m256i;
  static constexpr std::size_t kChannels = 32;

  ARENITE_FOR_VNNI static __m256i load_masked(std::uint64_t mask, const void* from) {
    return _mm256_maskz_loadu_epi8(static_cast<__mmask32>(mask), from);
  }
  ARENITE_FOR_VNNI static void store_masked(std::uint64_t mask, void* to, __m256i a) {
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
    store(_mm256_unpacklo_epi16(low_ab, low_cd), vectors);
    store(_mm256_unpackhi_epi16(low_ab, low_cd), vectors + 1);
    store(_mm256_unpacklo_epi16(high_ab, high_cd), vectors + 2);
    store(_mm256_unpackhi_epi16(high_ab, high_cd), vectors + 3);
  }
  // Of weights whose zero point is 0.
  ARENITE_FOR_VNNI static void interleave_weights(const __m256i (&rows)[kRows], std::int32_t,
                                                  void* to) {
    interleave(rows, to);
  }
  ARENITE_FOR_VNNI ARENITE_INLINE static void add_products(__m256i& sums, __m256i source,
                                                           __m256i weights) {
    asm("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(source), "v"(weights));
  }
};

// Vectors of few channels are better filled by pairs of rows.
void make_depthwise(const Int8DepthwiseRows& given) {
  const bool is_few = given.num_channels == 8 || given.num_channels == 16;
  const auto* pairs = is_few ? int8_depthwise_for_avx2(given) : nullptr;
  if (pairs != nullptr) {
    pairs->make(given);
    return;
  }
  (given.num_channels > Narrow::kChannels ? make_with<Wide> : make_with<Narrow>)(given);
}

constexpr Int8DepthwiseKernel kDepthwise{Wide::kChannels, make_depthwise};

}  // namespace

const Int8DepthwiseKernel* int8_depthwise_for_vnni(const Int8DepthwiseRows& rows) {
  const auto& convolution = rows.convolution;
  const bool fits = rows.multiplier() == 1 && convolution.filter_zero_point == 0 &&
                    Sizes<Wide>::fits(convolution.window);
  return has_dot_products() && fits ? &kDepthwise : nullptr;
}

const Int8Kernel& int8_kernel_for_vnni() {
  static const Int8Kernel kernel{false,
                                 1,
                                 tiles_of<Vnni, 1, 16>(),
                                 tiles_of<Vnni, 2, 14>(),
                                 copy,
                                 nullptr,
                                 fill,
                                 gather,
                                 add_up,
                                 nullptr,
                                 finish};
  return kernel;
}

}  // namespace arenite

#endif
