// Products of rows that are rounded to 8 bits with weights in blocks, by sums of integers.
#include "kernels/highway_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/block_product_int8.cpp"
#include "hwy/foreach_target.h"
// After them: compiled for each kind of processor.
#include <algorithm>
#include <cfloat>
#include <cstring>

#include "kernels/block_lanes.hpp"
#include "kernels/block_product.hpp"
#include "kernels/lanes.hpp"

// A rounded row: its integers, a scale for each block, and the sum of the integers of each block.
// Of 8 integers those at even places come first for 4 bits, as the words of codes have them.
#ifndef ARENITE_ROUNDED_ROW
#define ARENITE_ROUNDED_ROW
namespace arenite {
struct RoundedRow {
  std::int8_t* integers;
  float* scales;
  std::int32_t* sums;

  RoundedRow() = default;
  RoundedRow(const BlockWeights& weights, std::byte* at)
      : integers(reinterpret_cast<std::int8_t*>(at)),
        scales(reinterpret_cast<float*>(at + weights.blocks * weights.block)),
        sums(reinterpret_cast<std::int32_t*>(scales + weights.blocks)) {}
};
}  // namespace arenite
#endif

HWY_BEFORE_NAMESPACE();
namespace arenite {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_AVX3
constexpr std::size_t kPanelsOfOne = 4, kRows = 8;
#elif HWY_TARGET == HWY_AVX2
constexpr std::size_t kPanelsOfOne = 2, kRows = 4;
#elif HWY_ARCH_ARM_A64
constexpr std::size_t kPanelsOfOne = 2, kRows = 4;
#else
constexpr std::size_t kPanelsOfOne = 1, kRows = 2;
#endif
static_assert(kBlockRows % kRows == 0);

// Adds products of four bytes each: numbers from 0 to 15, and numbers with a sign. With Dots the
// processor has an instruction for it, which on x86 takes numbers up to 255.
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
constexpr bool kTakesBytes = false;
using Sums = Integers;

ARENITE_LANE Sums no_sums() { return Sums{0, 0, 0, 0}; }
ARENITE_LANE Sums all_sums(std::int32_t sum) { return Sums{sum, sum, sum, sum}; }
ARENITE_LANE Words all_words(std::uint32_t word) { return Words{word, word, word, word}; }
ARENITE_LANE Words both(Words a, Words b) { return a & b; }
template <bool Dots>
ARENITE_LANE Sums add_products(Sums sums, Words numbers, const std::int8_t* quad) {
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const Words one = numbers >> (8 * i) & all_words(255);
    sums += reinterpret_cast<Sums>(one) * std::int32_t{quad[i]};
  }
  return sums;
}
ARENITE_LANE Sums times_16(Sums sums) { return sums << 4; }
ARENITE_LANE Sums total(Sums a, Sums b) { return a + b; }
ARENITE_LANE Lanes floats(Sums sums) { return __builtin_convertvector(sums, Lanes); }
#else
using IntegerTag = hn::RebindToSigned<WordTag>;
using Sums = hn::Vec<IntegerTag>;

ARENITE_LANE Sums no_sums() { return hn::Zero(IntegerTag()); }
ARENITE_LANE Sums all_sums(std::int32_t sum) { return hn::Set(IntegerTag(), sum); }
ARENITE_LANE Words all_words(std::uint32_t word) { return hn::Set(WordTag(), word); }
ARENITE_LANE Words both(Words a, Words b) { return hn::And(a, b); }
ARENITE_LANE Words four(const std::int8_t* quad) {
  std::uint32_t word;
  std::memcpy(&word, quad, sizeof word);
  return all_words(word);
}

#if HWY_TARGET == HWY_AVX3
constexpr bool kTakesBytes = true;

template <bool Dots>
ARENITE_LANE Sums add_products(Sums sums, Words numbers, const std::int8_t* quad) {
  const Words factors = four(quad);
  if constexpr (Dots) {  // as _mm512_dpbusd_epi32, which needs another target
    __m512i made = sums.raw;
    asm("vpdpbusd %2, %1, %0" : "+v"(made) : "v"(numbers.raw), "v"(factors.raw));
    return Sums{made};
  } else {
    const __m512i pairs = _mm512_maddubs_epi16(numbers.raw, factors.raw);
    const __m512i quads = _mm512_madd_epi16(pairs, _mm512_set1_epi16(1));
    return Sums{_mm512_add_epi32(sums.raw, quads)};
  }
}
#elif HWY_TARGET == HWY_AVX2
constexpr bool kTakesBytes = false;

template <bool Dots>
ARENITE_LANE Sums add_products(Sums sums, Words numbers, const std::int8_t* quad) {
  const __m256i pairs = _mm256_maddubs_epi16(numbers.raw, four(quad).raw);
  const __m256i quads = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
  return Sums{_mm256_add_epi32(sums.raw, quads)};
}
#elif HWY_ARCH_ARM_A64
constexpr bool kTakesBytes = false;

template <bool Dots>
ARENITE_LANE Sums add_products(Sums sums, Words numbers, const std::int8_t* quad) {
  const int8x16_t codes = vreinterpretq_s8_u32(numbers.raw);
  const int8x16_t factors = vreinterpretq_s8_u32(four(quad).raw);
  if constexpr (Dots) {
    int32x4_t made = sums.raw;
    asm(".arch armv8.2-a+dotprod\n\tsdot %0.4s, %1.16b, %2.16b"
        : "+w"(made)
        : "w"(codes), "w"(factors));
    return Sums(made);
  } else {
    const int16x8_t low = vmull_s8(vget_low_s8(codes), vget_low_s8(factors));
    const int16x8_t high = vmull_high_s8(codes, factors);
    return Sums(vpadalq_s16(sums.raw, vpaddq_s16(low, high)));
  }
}
#else
constexpr bool kTakesBytes = false;

template <bool Dots>
ARENITE_LANE Sums add_products(Sums sums, Words numbers, const std::int8_t* quad) {
  const Words low = all_words(255);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const Words one = hn::And(hn::ShiftRightSame(numbers, 8 * i), low);
    sums = hn::Add(sums, hn::Mul(hn::BitCast(IntegerTag(), one),
                                 hn::Set(IntegerTag(), std::int32_t{quad[i]})));
  }
  return sums;
}
#endif

ARENITE_LANE Sums times_16(Sums sums) { return hn::ShiftLeft<4>(sums); }
ARENITE_LANE Sums total(Sums a, Sums b) { return hn::Add(a, b); }
ARENITE_LANE Lanes floats(Sums sums) { return hn::ConvertTo(LaneTag(), sums); }
#endif

template <std::size_t Bits, bool Dots>
ARENITE_LANE Sums add_word(Sums sums, Words words, const std::int8_t* integers) {
  const Words low = all_words(0x0F0F0F0F);
  if constexpr (Bits == 4) {
    const Sums some = add_products<Dots>(sums, both(words, low), integers);
    return add_products<Dots>(some, both(shifted<4>(words), low), integers + 4);
  } else if constexpr (Dots && kTakesBytes) {
    return add_products<Dots>(sums, words, integers);
  } else {
    const Sums high = add_products<Dots>(no_sums(), both(shifted<4>(words), low), integers);
    return total(add_products<Dots>(sums, both(words, low), integers), times_16(high));
  }
}

// Multiplies some panels with some rows, whose sums stay in registers.
template <std::size_t Bits, std::size_t Rows, std::size_t Panels, bool Middle, bool Dots>
ARENITE_LANE void multiply_some(const BlockWeights& weights, const RoundedRow (&rows)[Rows],
                                std::size_t panel, float (&totals)[Rows][Panels * kBlockPanel]) {
  constexpr std::size_t kCodes = 32 / Bits;
  constexpr std::size_t kVectors = Panels * kParts;
  Terms<Panels> terms(weights);
  for (auto& row : totals) {
    for (auto& each : row) { each = 0; }
  }
  const std::size_t groups = weights.block / kCodes;
  const std::size_t stride = weights.blocks * groups * kBlockPanel;  // of a panel
  const std::uint32_t* words = weights.words + panel * stride;
  for (std::size_t block = 0; block < weights.blocks; ++block) {
    Sums sums[Rows][kVectors];
#pragma GCC unroll 8
    for (std::size_t r = 0; r < Rows; ++r) {
      const Sums first = Middle ? all_sums(-(1 << (Bits - 1)) * rows[r].sums[block]) : no_sums();
#pragma GCC unroll 8
      for (std::size_t v = 0; v < kVectors; ++v) { sums[r][v] = first; }
    }
    for (std::size_t k = 0; k < weights.block; k += kCodes, words += kBlockPanel) {
      const std::size_t at = block * weights.block + k;
#pragma GCC unroll 8
      for (std::size_t v = 0; v < kVectors; ++v) {
        const std::uint32_t* from = words + v / kParts * stride + v % kParts * kLanes;
        const Words some = load_words(from);
        if (Rows == 1) { __builtin_prefetch(from + Panels * stride); }
#pragma GCC unroll 8
        for (std::size_t r = 0; r < Rows; ++r) {
          sums[r][v] = add_word<Bits, Dots>(sums[r][v], some, rows[r].integers + at);
        }
      }
    }
    terms.read(weights, panel, block);
#pragma GCC unroll 8
    for (std::size_t v = 0; v < kVectors; ++v) {
      const Lanes zero = load(terms.zeros + v * kLanes);
      const Lanes scale = load(terms.scales + v * kLanes);
#pragma GCC unroll 8
      for (std::size_t r = 0; r < Rows; ++r) {
        Lanes of_block = floats(sums[r][v]);
        if constexpr (!Middle) {
          const auto sum = static_cast<float>(rows[r].sums[block]);
          of_block = subtract_product(zero, all_lanes(sum), of_block);
        }
        const Lanes scaled = multiply(of_block, all_lanes(rows[r].scales[block]));
        float* const to = totals[r] + v * kLanes;
        store(multiply_add(scaled, scale, load(to)), to);
      }
    }
  }
}

template <std::size_t Bits, std::size_t Rows, std::size_t Panels, bool Dots>
ARENITE_LANE void multiply_rows_of(const BlockWeights& weights, const RoundedRow* given,
                                   std::size_t num_rows, std::size_t panel, float* const* results) {
  RoundedRow rows[Rows];
  // Rows beyond the last are the last again, and not kept.
  for (std::size_t r = 0; r < Rows; ++r) { rows[r] = given[std::min(r, num_rows - 1)]; }
  float totals[Rows][Panels * kBlockPanel];
  if (weights.zeros == nullptr) {
    multiply_some<Bits, Rows, Panels, true, Dots>(weights, rows, panel, totals);
  } else {
    multiply_some<Bits, Rows, Panels, false, Dots>(weights, rows, panel, totals);
  }
  for (std::size_t r = 0; r < std::min(Rows, num_rows); ++r) {
    keep(weights, totals[r], panel * kBlockPanel, Panels * kBlockPanel, results[r]);
  }
}

template <std::size_t Bits, bool Dots>
ARENITE_LANE void multiply_of(const BlockWeights& weights, const RoundedRow* rows,
                              std::size_t num_rows, std::size_t first_panel, std::size_t num_panels,
                              float* const* results) {
  const std::size_t end = first_panel + num_panels;
  std::size_t panel = first_panel;
  if (num_rows == 1) {
    for (; panel + kPanelsOfOne <= end; panel += kPanelsOfOne) {
      multiply_rows_of<Bits, 1, kPanelsOfOne, Dots>(weights, rows, 1, panel, results);
    }
    for (; panel < end; ++panel) {
      multiply_rows_of<Bits, 1, 1, Dots>(weights, rows, 1, panel, results);
    }
    return;
  }
  for (; panel < end; ++panel) {
    for (std::size_t first = 0; first < num_rows; first += kRows) {
      multiply_rows_of<Bits, kRows, 1, Dots>(weights, rows + first, num_rows - first, panel,
                                             results + first);
    }
  }
}

template <bool Dots>
void multiply_of_bits(const BlockWeights& weights, const RoundedRow* rows, std::size_t num_rows,
                      std::size_t first_panel, std::size_t num_panels, float* const* results) {
  if (weights.bits == 4) {
    multiply_of<4, Dots>(weights, rows, num_rows, first_panel, num_panels, results);
  } else {
    multiply_of<8, Dots>(weights, rows, num_rows, first_panel, num_panels, results);
  }
}

void multiply_rounded_rows(const BlockWeights& weights, const RoundedRow* rows,
                           std::size_t num_rows, std::size_t first_panel, std::size_t num_panels,
                           float* const* results) {
#if HWY_TARGET == HWY_AVX3 || HWY_ARCH_ARM_A64
  if (has_dot_products()) {
    multiply_of_bits<true>(weights, rows, num_rows, first_panel, num_panels, results);
    return;
  }
#endif
  multiply_of_bits<false>(weights, rows, num_rows, first_panel, num_panels, results);
}

// Rounds a block of a row, of which `count` elements exist, and writes the integers in order.
void round_block(const float* from, std::size_t count, std::size_t block, std::int8_t* to,
                 float* scale, std::int32_t* sum) {
  std::uint32_t furthest = 0;  // bits of a float without its sign are in the order of floats
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t bits;
    std::memcpy(&bits, from + i, sizeof bits);
    furthest = std::max(furthest, bits & 0x7FFFFFFF);
  }
  float most;
  std::memcpy(&most, &furthest, sizeof most);
  const float found = most / 127;
  const bool is_zero = found < FLT_MIN;  // its inverse might not exist
  const float inverse = is_zero ? 0.0f : 1.0f / found;
  // Rounds to nearest where its last bit is that of an integer.
  constexpr float kInteger = 12582912.0f;
  std::int32_t total = 0;
  for (std::size_t i = 0; i < count; ++i) {
    float value = from[i] * inverse;
    value = value > -127.0f ? value : -127.0f;  // NaN too: the scale is NaN then
    value = value < 127.0f ? value : 127.0f;
    const float moved = value + kInteger;
    std::uint32_t bits;
    std::memcpy(&bits, &moved, sizeof bits);
    to[i] = static_cast<std::int8_t>(bits & 255);
    total += to[i];
  }
  for (std::size_t i = count; i < block; ++i) { to[i] = 0; }
  *scale = is_zero ? 0.0f : found;
  *sum = total;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace arenite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace arenite {

std::size_t rounded_bytes(const BlockWeights& weights) {
  return weights.blocks * (weights.block + 2 * sizeof(float));
}

void round_row(const BlockWeights& weights, const float* row, std::byte* rounded) {
  static const auto round = ARENITE_COPY(round_block);
  const RoundedRow made(weights, rounded);
  const bool is_mixed = weights.bits == 4;
  for (std::size_t block = 0; block < weights.blocks; ++block) {
    const std::size_t first = block * weights.block;
    std::int8_t integers[kMostOfBlock];
    round(row + first, std::min(weights.block, weights.inputs - first), weights.block, integers,
          made.scales + block, made.sums + block);
    std::int8_t* const to = made.integers + first;
    for (std::size_t i = 0; i < weights.block; ++i) {
      to[is_mixed ? i / 8 * 8 + i % 2 * 4 + i % 8 / 2 : i] = integers[i];
    }
  }
}

void multiply_rounded(const BlockWeights& weights, std::byte* rounded, std::size_t num_rows,
                      std::size_t first_panel, std::size_t num_panels, float* const* results) {
  static const auto multiply = ARENITE_COPY(multiply_rounded_rows);
  RoundedRow rows[kBlockRows];
  for (std::size_t r = 0; r < num_rows; ++r) {
    rows[r] = RoundedRow(weights, rounded + r * rounded_bytes(weights));
  }
  multiply(weights, rows, num_rows, first_panel, num_panels, results);
}

}  // namespace arenite

#endif  // HWY_ONCE
