// Words of codes, scales and zero points of weights in blocks, as vectors, for kernels that Highway
// compiles once for each kind of processor. Include kernels/lanes.hpp first.
#if defined(ARENITE_BLOCK_LANES) == defined(HWY_TARGET_TOGGLE)  // once for each kind
#ifdef ARENITE_BLOCK_LANES
#undef ARENITE_BLOCK_LANES
#else
#define ARENITE_BLOCK_LANES
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/block_product.hpp"
#include "kernels/half.hpp"
#include "kernels/lanes.hpp"

HWY_BEFORE_NAMESPACE();
namespace arenite {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
typedef std::uint32_t Words __attribute__((vector_size(16)));
typedef std::int32_t Integers __attribute__((vector_size(16)));

ARENITE_LANE Words load_words(const std::uint32_t* from) {
  Words value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}
template <std::size_t Bits>
ARENITE_LANE Words shifted(Words words) {
  return words >> Bits;
}
template <std::size_t Bits>
ARENITE_LANE Lanes lowest(Words words) {
  constexpr std::uint32_t mask = (1u << Bits) - 1;
  return __builtin_convertvector(reinterpret_cast<Integers>(words & Words{mask, mask, mask, mask}),
                                 Lanes);
}
#else
namespace hn = hwy::HWY_NAMESPACE;
using WordTag = hn::ScalableTag<std::uint32_t>;
using Words = hn::Vec<WordTag>;

ARENITE_LANE Words load_words(const std::uint32_t* from) { return hn::LoadU(WordTag(), from); }
template <std::size_t Bits>
ARENITE_LANE Words shifted(Words words) {
  return hn::ShiftRight<static_cast<int>(Bits)>(words);
}
// As signed numbers, which more processors convert.
template <std::size_t Bits>
ARENITE_LANE Lanes lowest(Words words) {
  constexpr std::uint32_t mask = (1u << Bits) - 1;
#if HWY_TARGET == HWY_AVX3
  if constexpr (Bits == 4) {  // reads the lowest bits alone
    const __m512 all = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return Lanes{_mm512_permutexvar_ps(words.raw, all)};
  }
#endif
  const Words codes = hn::And(words, hn::Set(WordTag(), mask));
  return hn::ConvertTo(LaneTag(), hn::BitCast(hn::RebindToSigned<WordTag>(), codes));
}
#endif

// Lowest codes less their zero points, which are half the number of codes if Middle.
template <std::size_t Bits, bool Middle>
ARENITE_LANE Lanes less_zeros(Words words, Lanes zeros) {
#if HWY_TARGET == HWY_AVX3
  if constexpr (Bits == 4 && Middle) {
    const __m512 all = _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7);
    return Lanes{_mm512_permutexvar_ps(words.raw, all)};
  }
#endif
  return subtract(lowest<Bits>(words), zeros);
}

constexpr std::size_t kParts = kBlockPanel / kLanes;

// The scales and zero points of a block of some panels.
template <std::size_t Panels>
struct Terms {
  float scales[Panels * kBlockPanel];
  float zeros[Panels * kBlockPanel];

  ARENITE_LANE explicit Terms(const BlockWeights& weights) {
    const float zero = weights.bits == 4 ? 8.0f : 128.0f;
    for (auto& each : zeros) { each = zero; }
  }

  ARENITE_LANE void read(const BlockWeights& weights, std::size_t panel, std::size_t block) {
#pragma GCC unroll 4
    for (std::size_t p = 0; p < Panels; ++p) {
      const std::size_t at = ((panel + p) * weights.blocks + block) * kBlockPanel;
      float* const scale = scales + p * kBlockPanel;
      float* const zero = zeros + p * kBlockPanel;
      if (weights.has_half_scales) {
        const auto* halves = reinterpret_cast<const Half*>(weights.scales) + at;
        widen_panel(halves, scale);
      } else {
        std::memcpy(scale, weights.scales + at * sizeof(float), kBlockPanel * sizeof(float));
      }
      if (weights.zeros == nullptr) { continue; }
      if (weights.has_float_zeros) {
        std::memcpy(zero, weights.zeros + at * sizeof(float), kBlockPanel * sizeof(float));
      } else {
        const auto* bytes = reinterpret_cast<const std::uint8_t*>(weights.zeros) + at;
        for (std::size_t j = 0; j < kBlockPanel; ++j) { zero[j] = static_cast<float>(bytes[j]); }
      }
    }
  }

 private:
  ARENITE_LANE static void widen_panel(const Half* from, float* to) {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
    for (std::size_t j = 0; j < kBlockPanel; ++j) { to[j] = widened(from[j]); }
#else
    const hn::Rebind<hwy::float16_t, LaneTag> halves;
#pragma GCC unroll 4
    for (std::size_t j = 0; j < kBlockPanel; j += kLanes) {
      const auto* at = reinterpret_cast<const hwy::float16_t*>(from + j);
      store(hn::PromoteTo(LaneTag(), hn::LoadU(halves, at)), to + j);
    }
#endif
  }
};

ARENITE_LANE std::size_t length_of(const BlockWeights& weights, std::size_t block) {
  return std::min(weights.block, weights.inputs - block * weights.block);
}

// Writes the totals of a row that exist, with the bias.
ARENITE_LANE void keep(const BlockWeights& weights, const float* totals, std::size_t first,
                       std::size_t width, float* result) {
  const std::size_t count = std::min(width, weights.outputs - first);
  if (weights.bias == nullptr) {
    std::memcpy(result + first, totals, count * sizeof(float));
    return;
  }
  for (std::size_t j = 0; j < count; ++j) {
    result[first + j] = totals[j] + weights.bias[first + j];
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace arenite
HWY_AFTER_NAMESPACE();

#endif  // once for each kind
