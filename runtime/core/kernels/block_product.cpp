#include "kernels/highway_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/block_product.cpp"
#include "hwy/foreach_target.h"
// After them: compiled for each kind of processor.
#include <algorithm>

#include "kernels/block_lanes.hpp"
#include "kernels/block_product.hpp"
#include "kernels/lanes.hpp"

HWY_BEFORE_NAMESPACE();
namespace arenite {
namespace HWY_NAMESPACE {
namespace {

// Panels that one row, and rows that one unpacked block are multiplied with at once: as many sums
// as there are registers for, or as a processor begins while it awaits a sum.
#if HWY_TARGET == HWY_AVX3
constexpr std::size_t kPanelsOfOne = 4, kPanelsOfRows = 2, kRows = 8;
#elif HWY_TARGET == HWY_AVX2
constexpr std::size_t kPanelsOfOne = 2, kPanelsOfRows = 1, kRows = 6;
#elif HWY_ARCH_ARM_A64
constexpr std::size_t kPanelsOfOne = 1, kPanelsOfRows = 1, kRows = 6;
#else
constexpr std::size_t kPanelsOfOne = 1, kPanelsOfRows = 1, kRows = 2;
#endif
static_assert(kBlockRows % kRows == 0);

// Multiplies some panels with one row, whose sums stay in registers with the codes.
template <std::size_t Bits, std::size_t Panels, bool Middle>
struct OneRow {
  static constexpr std::size_t kCodes = 32 / Bits;
  static constexpr std::size_t kVectors = Panels * kParts;

  ARENITE_LANE static void multiply(const BlockWeights& weights, std::size_t panel,
                                    const float* row, float* totals) {
    Terms<Panels> terms(weights);
    Lanes sums[kVectors];
    for (std::size_t j = 0; j < Panels * kBlockPanel; ++j) { totals[j] = 0; }
    const std::size_t groups = weights.block / kCodes;
    const std::size_t stride = weights.blocks * groups * kBlockPanel;  // of a panel
    const std::uint32_t* const words = weights.words + panel * stride;
    for (std::size_t block = 0; block < weights.blocks; ++block) {
      terms.read(weights, panel, block);
      Lanes zeros[kVectors];
#pragma GCC unroll 8
      for (std::size_t v = 0; v < kVectors; ++v) {
        zeros[v] = load(terms.zeros + v * kLanes);
        sums[v] = all_lanes(0.0f);
      }
      const std::size_t length = length_of(weights, block);
      const float* const from = row + block * weights.block;
      const std::uint32_t* const here = words + block * groups * kBlockPanel;
      std::size_t k = 0;
      for (; k + kCodes <= length; k += kCodes) {
        add(here + k / kCodes * kBlockPanel, stride, from + k, zeros, sums);
      }
      if (k < length) {
        add_some(here + k / kCodes * kBlockPanel, stride, from + k, length - k, zeros, sums);
      }
#pragma GCC unroll 8
      for (std::size_t v = 0; v < kVectors; ++v) {
        float* const total = totals + v * kLanes;
        store(multiply_add(sums[v], load(terms.scales + v * kLanes), load(total)), total);
      }
    }
  }

 private:
  ARENITE_LANE static void load_group(const std::uint32_t* group, std::size_t stride,
                                      Words (&words)[kVectors]) {
#pragma GCC unroll 4
    for (std::size_t p = 0; p < Panels; ++p) {
#pragma GCC unroll 4
      for (std::size_t part = 0; part < kParts; ++part) {
        const std::uint32_t* from = group + p * stride + part * kLanes;
        words[p * kParts + part] = load_words(from);
        __builtin_prefetch(from + Panels * stride);
      }
    }
  }

  ARENITE_LANE static void add_one(Words (&words)[kVectors], float factor,
                                   const Lanes (&zeros)[kVectors], Lanes (&sums)[kVectors]) {
    const Lanes factors = all_lanes(factor);
#pragma GCC unroll 8
    for (std::size_t v = 0; v < kVectors; ++v) {
      sums[v] = multiply_add(less_zeros<Bits, Middle>(words[v], zeros[v]), factors, sums[v]);
      words[v] = shifted<Bits>(words[v]);
    }
  }

  ARENITE_LANE static void add(const std::uint32_t* group, std::size_t stride, const float* from,
                               const Lanes (&zeros)[kVectors], Lanes (&sums)[kVectors]) {
    Words words[kVectors];
    load_group(group, stride, words);
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kCodes; ++i) { add_one(words, from[i], zeros, sums); }
  }

  ARENITE_LANE static void add_some(const std::uint32_t* group, std::size_t stride,
                                    const float* from, std::size_t count,
                                    const Lanes (&zeros)[kVectors], Lanes (&sums)[kVectors]) {
    Words words[kVectors];
    load_group(group, stride, words);
    for (std::size_t i = 0; i < count; ++i) { add_one(words, from[i], zeros, sums); }
  }
};

// Multiplies some panels with several rows, one unpacked block after another.
template <std::size_t Bits>
struct ManyRows {
  static constexpr std::size_t kCodes = 32 / Bits;
  static constexpr std::size_t kVectors = kPanelsOfRows * kParts;
  static constexpr std::size_t kWidth = kPanelsOfRows * kBlockPanel;

  ARENITE_LANE static void multiply(const BlockWeights& weights, std::size_t panel,
                                    std::size_t num_panels, const float* const* rows,
                                    std::size_t num_rows, float* totals) {
    alignas(64) float unpacked[kMostOfBlock * kWidth];
    Terms<kPanelsOfRows> terms(weights);
    const std::size_t num_totals = (num_rows + kRows - 1) / kRows * kRows * kWidth;
    for (std::size_t j = 0; j < num_totals; ++j) { totals[j] = 0; }
    for (std::size_t block = 0; block < weights.blocks; ++block) {
      const std::size_t length = length_of(weights, block);
      // A panel that does not exist is the first one again, and not kept.
      if (num_panels == kPanelsOfRows) {
        terms.read(weights, panel, block);
      } else {
        Terms<1> first(weights);
        first.read(weights, panel, block);
        for (std::size_t j = 0; j < kWidth; ++j) {
          terms.scales[j] = first.scales[j % kBlockPanel];
          terms.zeros[j] = first.zeros[j % kBlockPanel];
        }
      }
#pragma GCC unroll 2
      for (std::size_t p = 0; p < kPanelsOfRows; ++p) {
        unpack(weights, panel + (p < num_panels ? p : 0), block, length,
               terms.zeros + p * kBlockPanel, unpacked + p * kBlockPanel);
      }
      for (std::size_t first = 0; first < num_rows; first += kRows) {
        const float* from[kRows];
#pragma GCC unroll 8
        for (std::size_t r = 0; r < kRows; ++r) {
          // Rows beyond the last are the last again, and not kept.
          from[r] = rows[std::min(first + r, num_rows - 1)] + block * weights.block;
        }
        add(from, unpacked, length, terms.scales, totals + first * kWidth);
      }
    }
  }

 private:
  ARENITE_LANE static void unpack(const BlockWeights& weights, std::size_t panel, std::size_t block,
                                  std::size_t length, const float* zeros, float* to) {
    const std::size_t groups = weights.block / kCodes;
    const std::uint32_t* words =
        weights.words + (panel * weights.blocks + block) * groups * kBlockPanel;
    for (std::size_t k = 0; k < length; k += kCodes, words += kBlockPanel) {
#pragma GCC unroll 4
      for (std::size_t part = 0; part < kParts; ++part) {
        Words some = load_words(words + part * kLanes);
        const Lanes zero = load(zeros + part * kLanes);
#pragma GCC unroll 8
        for (std::size_t i = 0; i < kCodes; ++i) {
          store(subtract(lowest<Bits>(some), zero), to + (k + i) * kWidth + part * kLanes);
          some = shifted<Bits>(some);
        }
      }
    }
  }

  ARENITE_LANE static void add(const float* const (&from)[kRows], const float* unpacked,
                               std::size_t length, const float* scales, float* totals) {
    Lanes sums[kRows][kVectors];
#pragma GCC unroll 8
    for (std::size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (std::size_t v = 0; v < kVectors; ++v) { sums[r][v] = all_lanes(0.0f); }
    }
    for (std::size_t k = 0; k < length; ++k) {
      Lanes weight[kVectors];
#pragma GCC unroll 4
      for (std::size_t v = 0; v < kVectors; ++v) {
        weight[v] = load(unpacked + k * kWidth + v * kLanes);
      }
#pragma GCC unroll 8
      for (std::size_t r = 0; r < kRows; ++r) {
        const Lanes factors = all_lanes(from[r][k]);
#pragma GCC unroll 4
        for (std::size_t v = 0; v < kVectors; ++v) {
          sums[r][v] = multiply_add(weight[v], factors, sums[r][v]);
        }
      }
    }
#pragma GCC unroll 8
    for (std::size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (std::size_t v = 0; v < kVectors; ++v) {
        float* const total = totals + r * kWidth + v * kLanes;
        store(multiply_add(sums[r][v], load(scales + v * kLanes), load(total)), total);
      }
    }
  }
};

template <std::size_t Bits, std::size_t Panels>
ARENITE_LANE void multiply_one(const BlockWeights& weights, const float* row, std::size_t panel,
                               float* result) {
  float totals[Panels * kBlockPanel];
  if (weights.zeros == nullptr) {
    OneRow<Bits, Panels, true>::multiply(weights, panel, row, totals);
  } else {
    OneRow<Bits, Panels, false>::multiply(weights, panel, row, totals);
  }
  keep(weights, totals, panel * kBlockPanel, Panels * kBlockPanel, result);
}

template <std::size_t Bits>
ARENITE_LANE void multiply_of(const BlockWeights& weights, const float* const* rows,
                              std::size_t num_rows, std::size_t first_panel, std::size_t num_panels,
                              float* const* results) {
  const std::size_t end = first_panel + num_panels;
  if (num_rows == 1) {
    std::size_t panel = first_panel;
    for (; panel + kPanelsOfOne <= end; panel += kPanelsOfOne) {
      multiply_one<Bits, kPanelsOfOne>(weights, rows[0], panel, results[0]);
    }
    for (; panel < end; ++panel) { multiply_one<Bits, 1>(weights, rows[0], panel, results[0]); }
    return;
  }
  using Many = ManyRows<Bits>;
  float totals[kBlockRows * Many::kWidth];
  for (std::size_t panel = first_panel; panel < end; panel += kPanelsOfRows) {
    Many::multiply(weights, panel, std::min(kPanelsOfRows, end - panel), rows, num_rows, totals);
    const std::size_t width = std::min(kPanelsOfRows, end - panel) * kBlockPanel;
    for (std::size_t r = 0; r < num_rows; ++r) {
      keep(weights, totals + r * Many::kWidth, panel * kBlockPanel, width, results[r]);
    }
  }
}

void multiply_rows(const BlockWeights& weights, const float* const* rows, std::size_t num_rows,
                   std::size_t first_panel, std::size_t num_panels, float* const* results) {
  if (weights.bits == 4) {
    multiply_of<4>(weights, rows, num_rows, first_panel, num_panels, results);
  } else {
    multiply_of<8>(weights, rows, num_rows, first_panel, num_panels, results);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace arenite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include "kernels/half.hpp"

namespace arenite {

void multiply_blocks(const BlockWeights& weights, const float* const* rows, std::size_t num_rows,
                     std::size_t first_panel, std::size_t num_panels, float* const* results) {
  static const auto multiply = ARENITE_COPY(multiply_rows);
  multiply(weights, rows, num_rows, first_panel, num_panels, results);
}

void read_blocks(const BlockWeights& weights, std::size_t output, float* result) {
  const std::size_t codes = 32 / weights.bits;
  const std::uint32_t mask = (1u << weights.bits) - 1;
  const std::size_t panel = output / kBlockPanel;
  const std::size_t lane = output % kBlockPanel;
  const std::size_t groups = weights.block / codes;
  for (std::size_t block = 0; block < weights.blocks; ++block) {
    const std::size_t at = (panel * weights.blocks + block) * kBlockPanel + lane;
    const float scale = weights.has_half_scales
                            ? widened(reinterpret_cast<const Half*>(weights.scales)[at])
                            : reinterpret_cast<const float*>(weights.scales)[at];
    float zero = weights.bits == 4 ? 8.0f : 128.0f;
    if (weights.zeros != nullptr) {
      zero = weights.has_float_zeros
                 ? reinterpret_cast<const float*>(weights.zeros)[at]
                 : static_cast<float>(std::to_integer<std::uint8_t>(weights.zeros[at]));
    }
    const std::size_t first = block * weights.block;
    const std::size_t count = std::min(weights.block, weights.inputs - first);
    const std::uint32_t* words =
        weights.words + (panel * weights.blocks + block) * groups * kBlockPanel + lane;
    for (std::size_t k = 0; k < count; ++k) {
      const std::uint32_t code =
          words[k / codes * kBlockPanel] >> (k % codes * weights.bits) & mask;
      result[first + k] = (static_cast<float>(code) - zero) * scale;
    }
  }
}

}  // namespace arenite

#endif  // HWY_ONCE
