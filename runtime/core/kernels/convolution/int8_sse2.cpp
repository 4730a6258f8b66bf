// Convolutions of 8-bit integers for every x86-64, by products of 16-bit integers.
#include "kernels/processor.hpp"

#if defined(ARENITE_X86)

#define ARENITE_FOR_VECTORS __attribute__((flatten))
#include "kernels/convolution/int8_tile_maker.hpp"

namespace arenite {

namespace {

void widen(const std::uint8_t* from, std::size_t count, std::uint8_t flip, std::uint8_t* to) {
  const __m128i flips = _mm_set1_epi8(static_cast<char>(flip));
  for (std::size_t i = 0; i < count; i += sizeof(__m128i)) {
    __m128i bytes = _mm_setzero_si128();
    std::memcpy(&bytes, from + i, std::min(count - i, sizeof bytes));
    bytes = _mm_xor_si128(bytes, flips);
    const __m128i even = _mm_and_si128(bytes, Sse2::all_words(0xff));
    const __m128i odd = _mm_srli_epi16(bytes, 8);
    Sse2::store(_mm_unpacklo_epi32(even, odd), to + 2 * i);
    Sse2::store(_mm_unpackhi_epi32(even, odd), to + 2 * i + sizeof even);
  }
}

void fill(std::uint16_t pattern, std::size_t bytes, std::uint8_t* to) {
  for (std::size_t i = 0; i < bytes; i += sizeof(__m128i)) {
    Sse2::store(Sse2::all_words(pattern), to + i);
  }
}

std::uint32_t add_up(const std::uint8_t* from, std::size_t quads) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < quads * kInt8Quad; ++i) {
    std::uint16_t element;
    std::memcpy(&element, from + i * sizeof element, sizeof element);
    sum += element;
  }
  return sum;
}

}  // namespace

const Int8Kernel& int8_kernel_for_sse2() {
  static const Int8Kernel kernel{false,
                                 2,
                                 tiles_of<Sse2, 1, 8>(),
                                 tiles_of<Sse2, 2, 5>(),
                                 copy_int8,
                                 widen,
                                 fill,
                                 gather_int8,
                                 add_up,
                                 nullptr,
                                 finish_int8};
  return kernel;
}

}  // namespace arenite

#endif
