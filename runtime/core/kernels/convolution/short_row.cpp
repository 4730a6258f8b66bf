#include "kernels/highway_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/convolution/short_row.cpp"
#include "hwy/foreach_target.h"
// After them: compiled for each kind of processor.
#include <algorithm>

#include "kernels/convolution/convolve.hpp"
#include "kernels/convolution/short_row.hpp"
#include "kernels/lanes.hpp"

HWY_BEFORE_NAMESPACE();
namespace arenite {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
template <typename Short>
ARENITE_LANE Lanes load_widened(const Short* from) {
  return Lanes{widened(from[0]), widened(from[1]), widened(from[2]), widened(from[3])};
}
#else
namespace hn = hwy::HWY_NAMESPACE;

ARENITE_LANE Lanes load_widened(const Half* from) {
  const hn::Rebind<hwy::float16_t, LaneTag> halves;
  return hn::PromoteTo(LaneTag(), hn::LoadU(halves, reinterpret_cast<const hwy::float16_t*>(from)));
}

ARENITE_LANE Lanes load_widened(const BFloat* from) {
  const hn::Rebind<std::uint16_t, LaneTag> words;
  const hn::RebindToUnsigned<LaneTag> bits;
  const auto raised =
      hn::PromoteTo(bits, hn::LoadU(words, reinterpret_cast<const std::uint16_t*>(from)));
  return hn::BitCast(LaneTag(), hn::ShiftLeft<16>(raised));
}
#endif

constexpr std::size_t kParts = kPanel / kLanes;
// Panels whose sums are made together: as many as a processor begins while it awaits a sum.
constexpr std::size_t kMostPanels = std::max<std::size_t>(8 / kParts, 1);

// The last of the panels may have fewer outputs.
template <std::size_t Panels, typename Short>
ARENITE_LANE void multiply_panels(const ShortRow<Short>& product, std::size_t channel) {
  constexpr std::size_t kWidth = Panels * kPanel;
  const std::size_t width = std::min(kWidth, product.channels - channel);
  const std::size_t stride = product.depth * kPanel;
  alignas(64) float totals[kWidth] = {};
  if (product.bias != nullptr) { std::copy_n(product.bias + channel, width, totals); }
  if (product.addend != nullptr) {
    for (std::size_t i = 0; i < width; ++i) { totals[i] += product.addend[channel + i]; }
  }
  Lanes sums[Panels * kParts];
#pragma GCC unroll 8
  for (std::size_t v = 0; v < Panels * kParts; ++v) { sums[v] = load(totals + v * kLanes); }
  const Short* from = product.filter + channel / kPanel * stride;
  const auto add = [&](std::size_t k) {
    const Lanes factor = all_lanes(product.row[k]);
#pragma GCC unroll 8
    for (std::size_t p = 0; p < Panels; ++p) {
#pragma GCC unroll 4
      for (std::size_t part = 0; part < kParts; ++part) {
        Lanes& sum = sums[p * kParts + part];
        const Short* const weights = from + k * kPanel + p * stride + part * kLanes;
        sum = multiply_add(factor, load_widened(weights), sum);
      }
    }
  };
  std::size_t k = 0;
  for (; k + 2 <= product.depth; k += 2) {
    // The line of the panels that come next: each panel is too short to be seen as a stream.
#pragma GCC unroll 8
    for (std::size_t p = 0; p < Panels; ++p) {
      __builtin_prefetch(from + k * kPanel + (Panels + p) * stride);
    }
    add(k);
    add(k + 1);
  }
  if (k < product.depth) { add(k); }
  const Lanes min = all_lanes(product.min);
  const Lanes max = all_lanes(product.max);
#pragma GCC unroll 8
  for (std::size_t v = 0; v < Panels * kParts; ++v) {
    store(clamp(sums[v], min, max), totals + v * kLanes);
  }
  std::copy_n(totals, width, product.result + channel);
}

template <typename Short>
ARENITE_LANE void multiply(const ShortRow<Short>& product) {
  std::size_t channel = 0;
  for (; channel + kMostPanels * kPanel <= product.channels; channel += kMostPanels * kPanel) {
    multiply_panels<kMostPanels>(product, channel);
  }
  for (; channel < product.channels; channel += kPanel) { multiply_panels<1>(product, channel); }
}

void multiply_halves(const ShortRow<Half>& product) { multiply(product); }
void multiply_bfloats(const ShortRow<BFloat>& product) { multiply(product); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace arenite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace arenite {

void multiply_short_row(const ShortRow<Half>& product) {
  static const auto multiply = ARENITE_COPY(multiply_halves);
  multiply(product);
}

void multiply_short_row(const ShortRow<BFloat>& product) {
  static const auto multiply = ARENITE_COPY(multiply_bfloats);
  multiply(product);
}

}  // namespace arenite

#endif  // HWY_ONCE
