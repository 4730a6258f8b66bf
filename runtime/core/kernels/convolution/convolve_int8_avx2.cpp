// Rows of convolutions of 8-bit integers for x86-64 with sums of two products of 16 bits.
#include "kernels/convolution/int8_gather.hpp"
#include "kernels/processor.hpp"
#include "kernels/x86_intrinsics.hpp"

#if defined(__x86_64__) && defined(__GNUC__)

#include <cstring>

namespace arenite {

namespace {

constexpr std::size_t kVector = sizeof(__m256i);

ARENITE_FOR_AVX2 __m256i load(const std::uint8_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}

ARENITE_FOR_AVX2 void store(__m256i a, std::uint8_t* to) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), a);
}

struct Bytes {
  static constexpr std::size_t kSize = 1;

  ARENITE_FOR_AVX2 static void write(__m256i bytes, std::uint8_t* to) { store(bytes, to); }
};

// A quad's first and third byte, then its second and fourth, as tiles widen weights.
struct Words {
  static constexpr std::size_t kSize = 2;

  ARENITE_FOR_AVX2 static void write(__m256i bytes, std::uint8_t* to) {
    const __m256i even = _mm256_and_si256(bytes, _mm256_set1_epi16(0xff));
    const __m256i odd = _mm256_srli_epi16(bytes, 8);
    const __m256i low = _mm256_unpacklo_epi32(even, odd);
    const __m256i high = _mm256_unpackhi_epi32(even, odd);
    store(_mm256_permute2x128_si256(low, high, 0x20), to);
    store(_mm256_permute2x128_si256(low, high, 0x31), to + kVector);
  }
};

template <typename Elements>
ARENITE_FOR_AVX2 void copy_as(const std::uint8_t* from, std::size_t count, std::uint8_t flip,
                              std::uint8_t* to) {
  const __m256i flips = _mm256_set1_epi8(static_cast<char>(flip));
  if (count < kVector) {
    alignas(kVector) std::uint8_t bytes[kVector] = {};
    std::memcpy(bytes, from, count);
    Elements::write(_mm256_xor_si256(load(bytes), flips), to);
    return;
  }
  std::size_t i = 0;
  for (; i + kVector <= count; i += kVector) {
    Elements::write(_mm256_xor_si256(load(from + i), flips), to + i * Elements::kSize);
  }
  if (i < count) {  // the last ones once more: quads stay whole
    i = count - kVector;
    Elements::write(_mm256_xor_si256(load(from + i), flips), to + i * Elements::kSize);
  }
}

ARENITE_FOR_AVX2 void fill(std::uint16_t pattern, std::size_t bytes, std::uint8_t* to) {
  const __m256i patterns = _mm256_set1_epi16(static_cast<short>(pattern));
  for (std::size_t i = 0; i < bytes; i += kVector) {
    store(patterns, to + i);
  }
}

ARENITE_FOR_AVX2 void gather(const Int8Gathering& given) { gather_runs(given); }

ARENITE_FOR_AVX2 std::uint32_t add_up(const std::uint8_t* from, std::size_t quads) {
  constexpr std::size_t kQuad = kInt8Quad * Words::kSize;
  const __m256i ones = _mm256_set1_epi16(1);
  __m256i sums = _mm256_setzero_si256();
  for (; quads >= kVector / kQuad; quads -= kVector / kQuad) {
    sums = _mm256_add_epi32(sums, _mm256_madd_epi16(load(from), ones));
    from += kVector;
  }
  __m128i rest = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
  for (; quads > 0; --quads) {
    const __m128i quad = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
    rest = _mm_add_epi32(rest, _mm_madd_epi16(quad, _mm256_castsi256_si128(ones)));
    from += kQuad;
  }
  rest = _mm_add_epi32(rest, _mm_unpackhi_epi64(rest, rest));
  rest = _mm_add_epi32(rest, _mm_shuffle_epi32(rest, 1));
  return static_cast<std::uint32_t>(_mm_cvtsi128_si32(rest));
}

}  // namespace

const Int8RowKernel* int8_row_kernel_for_avx2() {
  if (vectors() == Vectors::any) {
    return nullptr;
  }
  static const Int8RowKernel kernel{
      2,
      {kInt8Panel / 2, kInt8PixelsOfHalf, int8_tiles_for_avx2(kInt8Panel / 2)},
      {kInt8Panel, kInt8PixelsOfWidened, int8_tiles_for_avx2(kInt8Panel)},
      copy_as<Bytes>,
      copy_as<Words>,
      fill,
      gather,
      add_up,
  };
  return &kernel;
}

}  // namespace arenite

#else

namespace arenite {

const Int8RowKernel* int8_row_kernel_for_avx2() { return nullptr; }

}  // namespace arenite

#endif
