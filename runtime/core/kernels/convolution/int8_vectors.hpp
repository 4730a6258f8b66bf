// Vectors of x86-64 for kernels of 8-bit integers.
//
// A file that includes this has defined ARENITE_FOR_VECTORS, the attribute of functions for its
// instructions. The unnamed namespace keeps instruction sets from sharing a function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/convolution/int8_kernel.hpp"
#include "kernels/x86_intrinsics.hpp"

namespace arenite {

namespace {

// `Vectors` has, beside functions:
//
//     Vector      of sums, of source and weights, and of packed bytes
//     Floats
//     kLanes      sums of a vector
//     kPasses     over a quad of depth: vectors of products that each adds to a sum
//     kQuadBytes  of a quad of the source
//     kSpan       pixels whose addresses one register reaches

// Up to 16 bytes, in as few stores as their number has bits.
ARENITE_FOR_VECTORS ARENITE_INLINE void store_bytes(__m128i bytes, std::size_t count,
                                                    std::uint8_t* to) {
  if (count == sizeof bytes) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes);
    return;
  }
  auto rest = static_cast<std::uint64_t>(_mm_cvtsi128_si64(bytes));
  if ((count & 8) != 0) {
    std::memcpy(to, &rest, 8);
    rest = static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm_unpackhi_epi64(bytes, bytes)));
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

struct Sse2 {
  using Vector = __m128i;
  using Floats = __m128;
  static constexpr std::size_t kLanes = 4;
  static constexpr std::size_t kPasses = 2;
  static constexpr std::size_t kQuadBytes = kInt8Quad * sizeof(std::int16_t);
  static constexpr std::size_t kSpan = 5;

  static std::size_t part_bytes(std::size_t) { return sizeof(Vector); }
  static Vector load(const void* from) { return _mm_loadu_si128(static_cast<const Vector*>(from)); }
  static void store(Vector a, void* to) { _mm_storeu_si128(static_cast<Vector*>(to), a); }
  static Vector all(std::int32_t a) { return _mm_set1_epi32(a); }
  static Vector add(Vector a, Vector b) { return _mm_add_epi32(a, b); }
  // The first and third byte of each quad, or the second and fourth.
  static Vector factors(const std::int8_t* weights, std::size_t pass) {
    const Vector quads = load(weights);
    return _mm_srai_epi16(pass == 0 ? _mm_slli_epi16(quads, 8) : quads, 8);
  }
  static Vector source(const std::uint8_t* from, std::size_t pass) {
    std::int32_t two;
    std::memcpy(&two, from + pass * sizeof two, sizeof two);
    return all(two);
  }
  // As for AVX2: GCC 12 would keep too many products.
  ARENITE_INLINE static void add_products(Vector& sums, Vector source, Vector weights) {
    Vector products;
    asm("movdqa %2, %1\n\tpmaddwd %3, %1\n\tpaddd %1, %0"
        : "+x"(sums), "=&x"(products)
        : "x"(source), "x"(weights));
  }
  static Floats all_floats(float a) { return _mm_set1_ps(a); }
  static Floats load_floats(const float* from) { return _mm_loadu_ps(from); }
  static Floats product(Vector a, Floats b) { return _mm_mul_ps(_mm_cvtepi32_ps(a), b); }
  static Floats smaller(Floats a, Floats b) { return _mm_min_ps(a, b); }
  static Vector nearest(Floats a) { return _mm_cvtps_epi32(a); }
  static Vector all_words(std::int32_t a) { return _mm_set1_epi16(static_cast<short>(a)); }
  static Vector pack_words(Vector a, Vector b) { return _mm_packs_epi32(a, b); }
  static Vector add_words(Vector a, Vector b) { return _mm_adds_epi16(a, b); }
  static Vector clamp_words(Vector a, Vector min, Vector max) {
    return _mm_min_epi16(_mm_max_epi16(a, min), max);
  }
  static Vector narrow_unsigned(Vector a, Vector b) { return _mm_packus_epi16(a, b); }
  static Vector narrow_signed(Vector a, Vector b) { return _mm_packs_epi16(a, b); }
  static Vector in_order(Vector bytes) { return bytes; }
  ARENITE_INLINE static __m128i part(Vector bytes, std::size_t index) {
    switch (index) {
      case 0: return bytes;
      case 1: return _mm_srli_si128(bytes, kLanes);
      case 2: return _mm_srli_si128(bytes, 2 * kLanes);
      default: return _mm_srli_si128(bytes, 3 * kLanes);
    }
  }
  static void store_some(__m128i bytes, std::size_t count, std::uint8_t* to) {
    store_bytes(bytes, count, to);
  }
};

struct Avx2 {
  using Vector = __m256i;
  using Floats = __m256;
  static constexpr std::size_t kLanes = 8;
  static constexpr std::size_t kPasses = 2;
  static constexpr std::size_t kQuadBytes = kInt8Quad * sizeof(std::int16_t);
  static constexpr std::size_t kSpan = 5;

  static std::size_t part_bytes(std::size_t) { return sizeof(Vector); }
  ARENITE_FOR_AVX2 static Vector load(const void* from) {
    return _mm256_loadu_si256(static_cast<const Vector*>(from));
  }
  ARENITE_FOR_AVX2 static void store(Vector a, void* to) {
    _mm256_storeu_si256(static_cast<Vector*>(to), a);
  }
  ARENITE_FOR_AVX2 static Vector all(std::int32_t a) { return _mm256_set1_epi32(a); }
  ARENITE_FOR_AVX2 static Vector add(Vector a, Vector b) { return _mm256_add_epi32(a, b); }
  // The first and third byte of each quad, or the second and fourth.
  ARENITE_FOR_AVX2 static Vector factors(const std::int8_t* weights, std::size_t pass) {
    const Vector quads = load(weights);
    return _mm256_srai_epi16(pass == 0 ? _mm256_slli_epi16(quads, 8) : quads, 8);
  }
  ARENITE_FOR_AVX2 static Vector source(const std::uint8_t* from, std::size_t pass) {
    std::int32_t two;
    std::memcpy(&two, from + pass * sizeof two, sizeof two);
    return all(two);
  }
  // GCC 12 would add products to each other first, and keep more of them than there are registers.
  ARENITE_FOR_AVX2 ARENITE_INLINE static void add_products(Vector& sums, Vector source,
                                                           Vector weights) {
    Vector products;
    asm("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0"
        : "+x"(sums), "=&x"(products)
        : "x"(source), "x"(weights));
  }
  ARENITE_FOR_AVX2 static Floats all_floats(float a) { return _mm256_set1_ps(a); }
  ARENITE_FOR_AVX2 static Floats load_floats(const float* from) { return _mm256_loadu_ps(from); }
  ARENITE_FOR_AVX2 static Floats product(Vector a, Floats b) {
    return _mm256_mul_ps(_mm256_cvtepi32_ps(a), b);
  }
  ARENITE_FOR_AVX2 static Floats smaller(Floats a, Floats b) { return _mm256_min_ps(a, b); }
  ARENITE_FOR_AVX2 static Vector nearest(Floats a) { return _mm256_cvtps_epi32(a); }
  ARENITE_FOR_AVX2 static Vector all_words(std::int32_t a) {
    return _mm256_set1_epi16(static_cast<short>(a));
  }
  ARENITE_FOR_AVX2 static Vector pack_words(Vector a, Vector b) { return _mm256_packs_epi32(a, b); }
  ARENITE_FOR_AVX2 static Vector add_words(Vector a, Vector b) { return _mm256_adds_epi16(a, b); }
  ARENITE_FOR_AVX2 static Vector clamp_words(Vector a, Vector min, Vector max) {
    return _mm256_min_epi16(_mm256_max_epi16(a, min), max);
  }
  // Packing interleaves lanes of 128 bits; this puts them in order.
  ARENITE_FOR_AVX2 static Vector in_order(Vector bytes) {
    return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  }
  ARENITE_FOR_AVX2 static Vector narrow_unsigned(Vector a, Vector b) {
    return _mm256_packus_epi16(a, b);
  }
  ARENITE_FOR_AVX2 static Vector narrow_signed(Vector a, Vector b) {
    return _mm256_packs_epi16(a, b);
  }
  ARENITE_FOR_AVX2 static __m128i part(Vector bytes, std::size_t index) {
    const __m128i half =
        index < 2 ? _mm256_castsi256_si128(bytes) : _mm256_extracti128_si256(bytes, 1);
    return index % 2 == 0 ? half : _mm_srli_si128(half, kLanes);
  }
  ARENITE_FOR_AVX2 static void store_some(__m128i bytes, std::size_t count, std::uint8_t* to) {
    store_bytes(bytes, count, to);
  }
};

struct Vnni {
  using Vector = __m512i;
  using Floats = __m512;
  static constexpr std::size_t kLanes = 16;
  static constexpr std::size_t kPasses = 1;
  static constexpr std::size_t kQuadBytes = kInt8Quad;
  static constexpr std::size_t kSpan = 7;

  static std::size_t part_bytes(std::size_t panel_bytes) { return panel_bytes; }
  ARENITE_FOR_VNNI static Vector load(const void* from) { return _mm512_loadu_si512(from); }
  ARENITE_FOR_VNNI static void store(Vector a, void* to) { _mm512_storeu_si512(to, a); }
  ARENITE_FOR_VNNI static Vector all(std::int32_t a) { return _mm512_set1_epi32(a); }
  ARENITE_FOR_VNNI static Vector add(Vector a, Vector b) { return _mm512_add_epi32(a, b); }
  ARENITE_FOR_VNNI static Vector factors(const std::int8_t* weights, std::size_t) {
    return load(weights);
  }
  ARENITE_FOR_VNNI static Vector source(const std::uint8_t* from, std::size_t) {
    std::int32_t quad;
    std::memcpy(&quad, from, sizeof quad);
    return all(quad);
  }
  // As _mm512_dpbusd_epi32, for which GCC 12 would take more registers than there are.
  ARENITE_FOR_VNNI ARENITE_INLINE static void add_products(Vector& sums, Vector source,
                                                           Vector weights) {
    asm("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(source), "v"(weights));
  }
  ARENITE_FOR_VNNI static Floats all_floats(float a) { return _mm512_set1_ps(a); }
  ARENITE_FOR_VNNI static Floats load_floats(const float* from) { return _mm512_loadu_ps(from); }
  ARENITE_FOR_VNNI static Floats product(Vector a, Floats b) {
    return _mm512_mul_ps(_mm512_cvtepi32_ps(a), b);
  }
  ARENITE_FOR_VNNI static Floats smaller(Floats a, Floats b) { return _mm512_min_ps(a, b); }
  ARENITE_FOR_VNNI static Vector nearest(Floats a) { return _mm512_cvtps_epi32(a); }
  ARENITE_FOR_VNNI static Vector all_words(std::int32_t a) {
    return _mm512_set1_epi16(static_cast<short>(a));
  }
  ARENITE_FOR_VNNI static Vector pack_words(Vector a, Vector b) { return _mm512_packs_epi32(a, b); }
  ARENITE_FOR_VNNI static Vector add_words(Vector a, Vector b) { return _mm512_adds_epi16(a, b); }
  ARENITE_FOR_VNNI static Vector clamp_words(Vector a, Vector min, Vector max) {
    return _mm512_min_epi16(_mm512_max_epi16(a, min), max);
  }
  // Packing interleaves lanes of 128 bits; this puts them in order.
  ARENITE_FOR_VNNI static Vector in_order(Vector bytes) {
    return _mm512_permutexvar_epi32(
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), bytes);
  }
  ARENITE_FOR_VNNI static Vector narrow_unsigned(Vector a, Vector b) {
    return _mm512_packus_epi16(a, b);
  }
  ARENITE_FOR_VNNI static Vector narrow_signed(Vector a, Vector b) {
    return _mm512_packs_epi16(a, b);
  }
  ARENITE_FOR_VNNI ARENITE_INLINE static __m128i part(Vector bytes, std::size_t index) {
    switch (index) {
      case 0: return _mm512_castsi512_si128(bytes);
      case 1: return _mm512_extracti32x4_epi32(bytes, 1);
      case 2: return _mm512_extracti32x4_epi32(bytes, 2);
      default: return _mm512_extracti32x4_epi32(bytes, 3);
    }
  }
  ARENITE_FOR_VNNI static void store_some(__m128i bytes, std::size_t count, std::uint8_t* to) {
    _mm_mask_storeu_epi8(to, static_cast<__mmask16>((std::uint32_t{1} << count) - 1), bytes);
  }
};

// The bounds of a store, in registers.
template <typename Vectors>
struct Limits {
  ARENITE_FOR_VECTORS explicit Limits(const QuantisedStore& store)
      : high(Vectors::all_floats(static_cast<float>(store.max - store.zero_point))),
        zero_points(Vectors::all_words(store.zero_point)),
        min(Vectors::all_words(store.min)),
        max(Vectors::all_words(store.max)),
        is_unsigned(store.max > 127),
        is_whole(store.max - store.min == 255) {}

  typename Vectors::Floats high;
  typename Vectors::Vector zero_points;
  typename Vectors::Vector min;
  typename Vectors::Vector max;
  bool is_unsigned;
  bool is_whole;  // as wide as the type: packing clamps
};

// Four vectors of scaled sums as bytes; of vectors of more than 128 bits, lane by lane.
template <typename Vectors>
ARENITE_FOR_VECTORS ARENITE_INLINE typename Vectors::Vector narrowed(
    typename Vectors::Vector a, typename Vectors::Vector b, typename Vectors::Vector c,
    typename Vectors::Vector d, const Limits<Vectors>& limits) {
  auto low = Vectors::add_words(Vectors::pack_words(a, b), limits.zero_points);
  auto high = Vectors::add_words(Vectors::pack_words(c, d), limits.zero_points);
  if (!limits.is_whole) {
    low = Vectors::clamp_words(low, limits.min, limits.max);
    high = Vectors::clamp_words(high, limits.min, limits.max);
  }
  return limits.is_unsigned ? Vectors::narrow_unsigned(low, high)
                            : Vectors::narrow_signed(low, high);
}

}  // namespace

}  // namespace arenite
