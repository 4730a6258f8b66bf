// Rows of convolutions of 8-bit integers for x86-64 with sums of four products of bytes.
#include "kernels/convolution/int8_gather.hpp"
#include "kernels/convolution/int8_row_sizes.hpp"
#include "kernels/processor.hpp"
#include "kernels/x86_intrinsics.hpp"

#if defined(__x86_64__) && defined(__GNUC__)

namespace arenite {

namespace {

constexpr std::size_t kVector = kInt8RowVector;

ARENITE_FOR_VNNI void copy(const std::uint8_t* from, std::size_t count, std::uint8_t flip,
                           std::uint8_t* to) {
  const __m512i flips = _mm512_set1_epi8(static_cast<char>(flip));
  std::size_t i = 0;
  for (; i + kVector <= count; i += kVector) {
    _mm512_storeu_si512(to + i, _mm512_xor_si512(_mm512_loadu_si512(from + i), flips));
  }
  if (i < count) {
    const __mmask64 rest = (std::uint64_t{1} << (count - i)) - 1;
    _mm512_storeu_si512(to + i, _mm512_xor_si512(_mm512_maskz_loadu_epi8(rest, from + i), flips));
  }
}

ARENITE_FOR_VNNI void fill(std::uint16_t pattern, std::size_t bytes, std::uint8_t* to) {
  const __m512i patterns = _mm512_set1_epi16(static_cast<short>(pattern));
  for (std::size_t i = 0; i < bytes; i += kVector) {
    _mm512_storeu_si512(to + i, patterns);
  }
}

ARENITE_FOR_VNNI void gather(const Int8Gathering& given) { gather_runs(given); }

ARENITE_FOR_VNNI std::uint32_t add_up(const std::uint8_t* from, std::size_t quads) {
  const __m512i ones = _mm512_set1_epi8(1);
  __m512i sums = _mm512_setzero_si512();
  constexpr std::size_t kQuads = kVector / kInt8Quad;
  for (; quads >= kQuads; quads -= kQuads) {
    sums = _mm512_dpbusd_epi32(sums, _mm512_loadu_si512(from), ones);
    from += kVector;
  }
  const auto rest = static_cast<__mmask16>((std::uint32_t{1} << quads) - 1);
  sums = _mm512_dpbusd_epi32(sums, _mm512_maskz_loadu_epi32(rest, from), ones);
  return static_cast<std::uint32_t>(_mm512_reduce_add_epi32(sums));
}

}  // namespace

const Int8RowKernel* int8_row_kernel_for_vnni() {
  if (!has_dot_products()) {
    return nullptr;
  }
  static const Int8RowKernel kernel{
      1,
      {kInt8Panel, kInt8PixelsOfOne, int8_tiles_for_vnni(1)},
      {2 * kInt8Panel, kInt8PixelsOfTwo, int8_tiles_for_vnni(2)},
      copy,
      nullptr,
      fill,
      gather,
      add_up,
  };
  return &kernel;
}

}  // namespace arenite

#else

namespace arenite {

const Int8RowKernel* int8_row_kernel_for_vnni() { return nullptr; }

}  // namespace arenite

#endif
