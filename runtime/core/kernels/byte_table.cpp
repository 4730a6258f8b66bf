#include "kernels/byte_table.hpp"

#include <cstdlib>

#include "kernels/processor.hpp"
#include "kernels/x86_intrinsics.hpp"

namespace arenite {

namespace {

void look_up_one_by_one(const ByteTable& table, const std::uint8_t* source, std::uint8_t* target,
                        std::size_t count) {
  // Not by vectors: without an instruction for it, they would be taken apart and put together.
  for (std::size_t i = 0; i < count; ++i) { target[i] = table[source[i]]; }
}

#if defined(ARENITE_X86)
#define ARENITE_FOR_BYTE_TABLES \
  __attribute__((flatten, target("avx512f,avx512dq,avx512bw,avx512vl,avx512vbmi")))

// Permutations take half of the table each; the highest bit of a byte says which half it is.
ARENITE_FOR_BYTE_TABLES void look_up_by_vectors(const ByteTable& table, const std::uint8_t* source,
                                                std::uint8_t* target, std::size_t count) {
  constexpr std::size_t kVector = 64;
  __m512i parts[4];
  for (std::size_t part = 0; part < 4; ++part) {
    parts[part] = _mm512_loadu_si512(table.data() + part * kVector);
  }
  std::size_t i = 0;
  for (; i + kVector <= count; i += kVector) {
    const __m512i bytes = _mm512_loadu_si512(source + i);
    const __m512i low = _mm512_permutex2var_epi8(parts[0], bytes, parts[1]);
    const __m512i high = _mm512_permutex2var_epi8(parts[2], bytes, parts[3]);
    const __mmask64 is_high = _mm512_movepi8_mask(bytes);
    _mm512_storeu_si512(target + i, _mm512_mask_mov_epi8(low, is_high, high));
  }
  look_up_one_by_one(table, source + i, target + i, count - i);
}

bool has_byte_permutations() {
  static const bool found = std::getenv("ARENITE_VECTORS") == nullptr &&
                            vectors() == Vectors::avx512 &&
                            static_cast<bool>(__builtin_cpu_supports("avx512vbmi"));
  return found;
}
#endif

}  // namespace

void look_up(const ByteTable& table, const std::uint8_t* source, std::uint8_t* target,
             std::size_t count) {
#if defined(ARENITE_X86)
  if (has_byte_permutations()) { return look_up_by_vectors(table, source, target, count); }
#endif
  look_up_one_by_one(table, source, target, count);
}

}  // namespace arenite
