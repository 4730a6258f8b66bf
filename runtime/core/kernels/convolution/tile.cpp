#include "kernels/convolution/tile.hpp"

#include <utility>

#include "kernels/processor.hpp"
#include "kernels/products_by_element.hpp"

// This file is compiled once for each kind of vectors: it includes itself. Which of them the
// processor has is asked in one place for all kernels, not by Highway.
#if defined(__x86_64__)
#define HWY_DISABLED_TARGETS ((HWY_AVX3 - 1) | HWY_SSE4)
#else
#define HWY_COMPILE_ONLY_STATIC
#endif
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/convolution/tile.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

// No functions of other headers are called from here on: the linker may keep a copy that is
// compiled for a larger processor (ODR).
HWY_BEFORE_NAMESPACE();
namespace arenite {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::CappedTag<float, kPanel>;
using Vec = hn::Vec<Floats>;
constexpr std::size_t kLanes = hn::MaxLanes(Floats());
// Half of a panel is half of a vector where vectors are as wide as panels.
#if HWY_TARGET == HWY_AVX3
constexpr bool kHalvesVectors = true;
using Halves = hn::Half<Floats>;
using HalfVec = hn::Vec<Halves>;
HWY_INLINE HalfVec lower_half(Vec value) { return hn::LowerHalf(Halves(), value); }
#else
constexpr bool kHalvesVectors = false;
using Halves = Floats;
using HalfVec = Vec;
HWY_INLINE HalfVec lower_half(Vec value) { return value; }
#endif
// Panels of which the last may be a half, and of windows that are read row by row.
constexpr std::size_t kHalvedPanels = 2;
// Without vectors the sums of a few columns fill the registers.
constexpr std::size_t kColumns = kLanes == 1 ? 4 : kPanel;

// Sums are named by numbers that are known when this is compiled: arrays that loops go through
// would stay in memory.
template <std::size_t... I>
using Indices = std::index_sequence<I...>;

template <std::size_t P, std::size_t... V>
HWY_INLINE void set_pixel(Vec* HWY_RESTRICT sums, const Vec* HWY_RESTRICT values, Indices<V...>) {
  ((sums[P * sizeof...(V) + V] = values[V]), ...);
}

template <std::size_t P, std::size_t... V>
HWY_INLINE void load_pixel(Vec* HWY_RESTRICT sums, const float* from, Indices<V...>) {
  ((sums[P * sizeof...(V) + V] = hn::LoadU(Floats(), from + V * kLanes)), ...);
}

template <std::size_t P, std::size_t... V>
HWY_INLINE void add_pixel(Vec* HWY_RESTRICT sums, const float* from, Indices<V...>) {
  ((sums[P * sizeof...(V) + V] =
        hn::Add(sums[P * sizeof...(V) + V], hn::LoadU(Floats(), from + V * kLanes))),
   ...);
}

// NaN stays: if an operand is NaN, x86 returns the second one, ARM64 a NaN; Highway without vectors
// may return the first.
template <typename V>
HWY_INLINE V clamp(V sum, V min, V max) {
#if HWY_ARCH_ARM_A64
  return V(vminq_f32(vmaxq_f32(sum.raw, min.raw), max.raw));
#else
  if constexpr (kLanes > 1) { return hn::Min(max, hn::Max(min, sum)); }
  sum = hn::IfThenElse(hn::Lt(sum, min), min, sum);
  return hn::IfThenElse(hn::Lt(max, sum), max, sum);
#endif
}

template <std::size_t P, std::size_t... V>
HWY_INLINE void clamp_pixel(Vec* HWY_RESTRICT sums, Vec min, Vec max, Indices<V...>) {
  ((sums[P * sizeof...(V) + V] = clamp(sums[P * sizeof...(V) + V], min, max)), ...);
}

template <std::size_t P, std::size_t... V>
HWY_INLINE void store_pixel(const Vec* HWY_RESTRICT sums, float* to, Indices<V...>) {
  (hn::StoreU(sums[P * sizeof...(V) + V], Floats(), to + V * kLanes), ...);
}

template <std::size_t P, std::size_t... V>
HWY_INLINE void multiply_pixel(Vec* HWY_RESTRICT sums, const Vec* HWY_RESTRICT weights, Vec factors,
                               Indices<V...>) {
  ((sums[P * sizeof...(V) + V] = hn::MulAdd(factors, weights[V], sums[P * sizeof...(V) + V])), ...);
}

template <std::size_t P, std::size_t... V>
HWY_INLINE void multiply_pixel_and_half(Vec* HWY_RESTRICT sums, const Vec* HWY_RESTRICT weights,
                                        HalfVec* HWY_RESTRICT halves, HalfVec last, Vec factors,
                                        Indices<V...> vectors) {
  multiply_pixel<P>(sums, weights, factors, vectors);
  halves[P] = hn::MulAdd(lower_half(factors), last, halves[P]);
}

// The place of a vector of weights among panels that lie apart.
template <std::size_t V>
HWY_INLINE const float* weights_at(const float* filter, std::size_t panel_stride) {
  return filter + V * kLanes / kPanel * panel_stride + V * kLanes % kPanel;
}

// How far ahead of its use a weight is asked for: reads that miss the caches take that long.
constexpr std::size_t kAhead = 32 * kPanel;

#if HWY_ARCH_ARM_A64
// Four steps of the depth are loaded for each pixel at once: a product takes one of the lanes.
// Nothing is asked for ahead: the processor does that by itself where weights follow one another.
template <int Lane, std::size_t NumPixels, std::size_t... Pair>
HWY_INLINE void multiply_lane(const float* filter, std::size_t panel_stride, Vec* HWY_RESTRICT sums,
                              const Vec (&factors)[NumPixels], Indices<Pair...>) {
  (add_products<Lane>(weights_at<2 * Pair>(filter + Lane * kPanel, panel_stride), factors,
                      [=](std::size_t pixel, std::size_t i) -> Vec& {
                        return sums[(pixel * sizeof...(Pair) + Pair) * 2 + i];
                      }),
   ...);
}
#endif

// A source is read where a copy of it lies, or where it lies itself: pixel by pixel, or row by row
// with pixels side by side.
struct Copied {
  const float* pixels;

  static constexpr std::size_t num_rows() { return 1; }
  HWY_INLINE Copied row(std::size_t) const { return *this; }

  template <std::size_t P>
  HWY_INLINE const float* at(std::size_t k) const {
    return pixels + P * kTileStride + k;
  }
};

template <std::size_t NumPixels>
struct InPlace {
  const float* pixels[NumPixels];

  static constexpr std::size_t num_rows() { return 1; }
  HWY_INLINE const InPlace& row(std::size_t) const { return *this; }

  template <std::size_t P>
  HWY_INLINE const float* at(std::size_t k) const {
    return pixels[P] + k;
  }
};

template <std::size_t Step>
struct Row {
  const float* first;

  template <std::size_t P>
  HWY_INLINE const float* at(std::size_t k) const {
    return first + P * Step + k;
  }
};

template <std::size_t Step>
struct Rows {
  const float* const* rows;
  std::size_t count;

  HWY_INLINE std::size_t num_rows() const { return count; }
  HWY_INLINE Row<Step> row(std::size_t index) const { return {rows[index]}; }
};

// The lines that the sums of the next tile will be stored to are asked for a tile ahead.
template <std::size_t... Panel>
HWY_INLINE void prefetch_pixel(const float* to, Indices<Panel...>) {
  (__builtin_prefetch(to + Panel * kPanel, 1), ...);
}

// With `HasHalf` half a vector follows the whole ones.
template <bool HasHalf, typename Source, std::size_t... P, std::size_t... V, std::size_t... Panel>
HWY_INLINE void multiply_columns(const Tile& tile, const Source& all, std::size_t column,
                                 [[maybe_unused]] Indices<P...> pixels, Indices<V...> vectors,
                                 Indices<Panel...> panels) {
  const Floats d;
  const Halves half;
  constexpr std::size_t kVectors = sizeof...(V);
  constexpr std::size_t kWhole = kVectors * kLanes;
  // An unused element costs nothing; C++ has no empty arrays.
  Vec sums[sizeof...(P) * kVectors + (kVectors == 0)];
  [[maybe_unused]] HalfVec halves[sizeof...(P)];
  const std::size_t channel = tile.channel + column;
  if (tile.bias == nullptr) {
    (load_pixel<P>(sums, tile.result[P] + channel, vectors), ...);
    if constexpr (HasHalf) {
      ((halves[P] = hn::LoadU(half, tile.result[P] + channel + kWhole)), ...);
    }
  } else {
    (prefetch_pixel(tile.result[P] + channel + tile.next, panels), ...);
    const Vec bias[kVectors + (kVectors == 0)] = {hn::LoadU(d, tile.bias + column + V * kLanes)...};
    (set_pixel<P>(sums, bias, vectors), ...);
    if constexpr (HasHalf) {
      const HalfVec last = hn::LoadU(half, tile.bias + column + kWhole);
      ((halves[P] = last), ...);
    }
    if (tile.addend != nullptr) {
      (add_pixel<P>(sums, tile.addend[P] + channel, vectors), ...);
      if constexpr (HasHalf) {
        ((halves[P] = hn::Add(halves[P], hn::LoadU(half, tile.addend[P] + channel + kWhole))), ...);
      }
    }
  }
  const float* filter = tile.filter + column;
  for (std::size_t r = 0; r < all.num_rows(); ++r) {
    const auto source = all.row(r);
    std::size_t k = 0;
#if HWY_ARCH_ARM_A64
    constexpr auto kPairs = std::make_index_sequence<kVectors / 2>();
    for (const float* end = filter + tile.depth / 4 * 4 * kPanel; filter != end; k += 4) {
      const Vec factors[] = {hn::LoadU(d, source.template at<P>(k))...};
      multiply_lane<0>(filter, tile.panel_stride, sums, factors, kPairs);
      multiply_lane<1>(filter, tile.panel_stride, sums, factors, kPairs);
      multiply_lane<2>(filter, tile.panel_stride, sums, factors, kPairs);
      multiply_lane<3>(filter, tile.panel_stride, sums, factors, kPairs);
      filter += 4 * kPanel;
    }
#endif
    for (; k < tile.depth; ++k) {
      const Vec weights[kVectors + (kVectors == 0)] = {
          hn::LoadU(d, weights_at<V>(filter, tile.panel_stride))...};
      (__builtin_prefetch(filter + Panel * tile.panel_stride + kAhead), ...);
      if constexpr (HasHalf) {
        const HalfVec last = hn::LoadU(half, weights_at<kVectors>(filter, tile.panel_stride));
        (multiply_pixel_and_half<P>(sums, weights, halves, last,
                                    hn::Set(d, *source.template at<P>(k)), vectors),
         ...);
      } else {
        (multiply_pixel<P>(sums, weights, hn::Set(d, *source.template at<P>(k)), vectors), ...);
      }
      filter += kPanel;
    }
  }
  if (tile.is_last) {
    const Vec min = hn::Set(d, tile.min);
    const Vec max = hn::Set(d, tile.max);
    (clamp_pixel<P>(sums, min, max, vectors), ...);
    if constexpr (HasHalf) {
      ((halves[P] = clamp(halves[P], lower_half(min), lower_half(max))), ...);
    }
  }
  (store_pixel<P>(sums, tile.result[P] + channel, vectors), ...);
  if constexpr (HasHalf) { (hn::StoreU(halves[P], half, tile.result[P] + channel + kWhole), ...); }
}

template <std::size_t NumPanels, bool HasHalf, typename Source, std::size_t... P>
HWY_INLINE void multiply_from(const Tile& tile, const Source& source, Indices<P...> pixels) {
  constexpr std::size_t kAll = NumPanels * kPanel - (HasHalf ? kPanel / 2 : 0);
  constexpr std::size_t kAtOnce = kColumns < kPanel ? kColumns : kAll;
  for (std::size_t column = 0; column < kAll; column += kAtOnce) {
    multiply_columns<HasHalf && kHalvesVectors>(tile, source, column, pixels,
                                                std::make_index_sequence<kAtOnce / kLanes>(),
                                                std::make_index_sequence<NumPanels>());
  }
}

template <std::size_t NumPanels, bool HasHalf, std::size_t... P>
void multiply_copied(const Tile& tile, Indices<P...> pixels) {
  multiply_from<NumPanels, HasHalf>(tile, Copied{tile.copies}, pixels);
}

template <std::size_t NumPanels, bool HasHalf, std::size_t... P>
void multiply_in_place(const Tile& tile, Indices<P...> pixels) {
  multiply_from<NumPanels, HasHalf>(tile, InPlace<sizeof...(P)>{{tile.source[P]...}}, pixels);
}

template <std::size_t NumPanels, bool HasHalf, std::size_t NumPixels>
void multiply(const Tile& tile) {
  if (tile.source == nullptr) {
    multiply_copied<NumPanels, HasHalf>(tile, std::make_index_sequence<NumPixels>());
  } else {
    multiply_in_place<NumPanels, HasHalf>(tile, std::make_index_sequence<NumPixels>());
  }
}

template <std::size_t NumPanels, std::size_t NumPixels, std::size_t Step>
void multiply_rows(const Tile& tile) {
  multiply_from<NumPanels, false>(tile, Rows<Step>{tile.rows, tile.num_rows},
                                  std::make_index_sequence<NumPixels>());
}

// Stores whole vectors: the excess lies between the copies, or is overwritten.
HWY_INLINE void copy_row(const float* from, std::size_t size, float* to) {
  const Floats d;
  std::size_t i = 0;
#pragma GCC unroll 4
  for (; i + kLanes <= size; i += kLanes) { hn::StoreU(hn::LoadU(d, from + i), d, to + i); }
  if (i == size) { return; }
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  hn::StoreU(hn::MaskedLoad(hn::FirstN(d, size - i), d, from + i), d, to + i);
#else
  for (; i < size; ++i) { to[i] = from[i]; }
#endif
}

void copy_rows(const float* from, std::size_t step, std::size_t count, std::size_t size,
               float* to) {
  for (std::size_t i = 0; i < count; ++i) {
    copy_row(from, size, to);
    from += step;
    to += kTileStride;
  }
}

template <std::size_t NumPanels, std::size_t NumPixels, std::size_t... Step>
constexpr void list_rows(TileKernels& kernels, Indices<Step...>) {
  ((kernels.multiply_rows[Step][NumPanels - 1][NumPixels - 1] =
        multiply_rows<NumPanels, NumPixels, kTileSteps[Step]>),
   ...);
}

template <std::size_t NumPanels, std::size_t... P>
constexpr void list(TileKernels& kernels, Indices<P...>) {
  ((kernels.multiply[NumPanels - 1][P] = multiply<NumPanels, false, P + 1>), ...);
  if constexpr (NumPanels <= kHalvedPanels) {
    ((kernels.multiply_to_half[NumPanels - 1][P] = multiply<NumPanels, true, P + 1>), ...);
    constexpr std::size_t kMost = sizeof...(P);
    constexpr auto kSteps = std::make_index_sequence<kTileSteps.size()>();
    list_rows<NumPanels, kMost>(kernels, kSteps);
    list_rows<NumPanels, (kMost > 1 ? kMost - 1 : kMost)>(kernels, kSteps);
  }
}

// As many pointers to pixels stay in registers on x86-64.
constexpr std::size_t kPointers = 11;

// Most pixels with one panel, with two, and so on.
template <std::size_t... Pixels, std::size_t... P>
constexpr TileKernels list_all(Indices<P...>) {
  constexpr std::size_t kMost[] = {Pixels...};
  TileKernels kernels{kMost[0], kMost[0] < kPointers ? kMost[0] : kPointers, {}, {}, {}, copy_rows};
  (list<P + 1>(kernels, std::make_index_sequence<kMost[P]>()), ...);
  return kernels;
}

template <std::size_t... Pixels>
constexpr TileKernels list_all() {
  return list_all<Pixels...>(std::make_index_sequence<sizeof...(Pixels)>());
}

}  // namespace

#if HWY_TARGET == HWY_AVX3
extern constexpr TileKernels kKernels = list_all<14, 14, 9, 6>();
#elif HWY_TARGET == HWY_AVX2 || HWY_ARCH_ARM_A64
extern constexpr TileKernels kKernels = list_all<6, 3, 2, 1>();
#else
extern constexpr TileKernels kKernels = list_all<3>();
#endif

}  // namespace HWY_NAMESPACE
}  // namespace arenite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace arenite {

const TileKernels& tile_kernels() {
#if HWY_TARGETS & HWY_AVX3
  if (vectors() == Vectors::avx512) { return N_AVX3::kKernels; }
#endif
#if HWY_TARGETS & HWY_AVX2
  if (vectors() != Vectors::any) { return N_AVX2::kKernels; }
#endif
#if HWY_TARGETS & HWY_SSSE3
  if (__builtin_cpu_supports("ssse3")) { return N_SSSE3::kKernels; }
#endif
  return HWY_STATIC_DISPATCH(kKernels);
}

}  // namespace arenite

#endif
