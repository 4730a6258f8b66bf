#include "kernels/convolution/tile.hpp"

#include <limits>
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
// Panels of which the last may be a half.
constexpr std::size_t kHalvedPanels = 2;
// Without vectors, and with the 16 of 32-bit ARM, the sums of a few columns fill the registers.
constexpr std::size_t kColumns = kLanes == 1 ? 4 : HWY_ARCH_ARM_V7 ? kPanel / 2 : kPanel;

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

// NaN stays: if an operand is NaN, x86 returns the second one, ARM a NaN; Highway without vectors
// may return the first.
template <typename V>
HWY_INLINE V clamp(V sum, V min, V max) {
#if HWY_ARCH_ARM && HWY_TARGET != HWY_SCALAR
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

#if HWY_ARCH_ARM_A64
constexpr float kInfinite = std::numeric_limits<float>::infinity();

template <std::size_t P, std::size_t... V>
HWY_INLINE void raise_pixel(Vec* HWY_RESTRICT sums, Vec min, Indices<V...>) {
  ((sums[P * sizeof...(V) + V] = Vec(vmaxq_f32(sums[P * sizeof...(V) + V].raw, min.raw))), ...);
}
#endif

template <std::size_t P, std::size_t... V>
HWY_INLINE void store_pixel(const Vec* HWY_RESTRICT sums, float* to, Indices<V...>) {
  (hn::StoreU(sums[P * sizeof...(V) + V], Floats(), to + V * kLanes), ...);
}

// 32-bit ARM multiplies with a lane only where the product is rounded, so it always is.
template <typename V>
HWY_INLINE V multiply_add(V factors, V weights, V sum) {
#if HWY_ARCH_ARM_V7 && HWY_TARGET != HWY_SCALAR
  return V(vmlaq_f32(sum.raw, factors.raw, weights.raw));
#else
  return hn::MulAdd(factors, weights, sum);
#endif
}

template <std::size_t P, std::size_t... V>
HWY_INLINE void multiply_pixel(Vec* HWY_RESTRICT sums, const Vec* HWY_RESTRICT weights, Vec factors,
                               Indices<V...>) {
  ((sums[P * sizeof...(V) + V] = multiply_add(factors, weights[V], sums[P * sizeof...(V) + V])),
   ...);
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

#if HWY_ARCH_ARM_V7 && HWY_TARGET != HWY_SCALAR
// Four steps of the depth of up to four pixels, as often as told: compilers would spill sums. The
// factors of pixel p are in q(p), the weights of two steps in q12 to q15.
#define LOAD_WEIGHTS(d) "vld1.32 {" d "}, [%[weights]], %[step]\n"
#define LOAD_PIXEL(p, d) "vld1.32 {" d "}, [%[p" #p "]]!\n"
#define MULTIPLY(p, a, b, lane) \
  "vmla.f32 %q[a" #p "], " a ", " lane "\nvmla.f32 %q[b" #p "], " b ", " lane "\n"
#define STEP1(a, b, l0, l1, l2, l3) MULTIPLY(0, a, b, l0)
#define STEP2(a, b, l0, l1, l2, l3) STEP1(a, b, l0, l1, l2, l3) MULTIPLY(1, a, b, l1)
#define STEP3(a, b, l0, l1, l2, l3) STEP2(a, b, l0, l1, l2, l3) MULTIPLY(2, a, b, l2)
#define STEP4(a, b, l0, l1, l2, l3) STEP3(a, b, l0, l1, l2, l3) MULTIPLY(3, a, b, l3)
#define PIXELS1 LOAD_PIXEL(0, "d0-d1")
#define PIXELS2 PIXELS1 LOAD_PIXEL(1, "d2-d3")
#define PIXELS3 PIXELS2 LOAD_PIXEL(2, "d4-d5")
#define PIXELS4 PIXELS3 LOAD_PIXEL(3, "d6-d7")
#define SUMS1 [a0] "+w"(sums[0].raw), [b0] "+w"(sums[1].raw), [p0] "+r"(pixels[0])
#define SUMS2 SUMS1, [a1] "+w"(sums[2].raw), [b1] "+w"(sums[3].raw), [p1] "+r"(pixels[1])
#define SUMS3 SUMS2, [a2] "+w"(sums[4].raw), [b2] "+w"(sums[5].raw), [p2] "+r"(pixels[2])
#define SUMS4 SUMS3, [a3] "+w"(sums[6].raw), [b3] "+w"(sums[7].raw), [p3] "+r"(pixels[3])
#define MULTIPLY_FOURS(P)                                                                        \
  __asm__ volatile(                                                                              \
      "1:\n" PIXELS##P LOAD_WEIGHTS("d24-d27") LOAD_WEIGHTS("d28-d31")                           \
          STEP##P("q12", "q13", "d0[0]", "d2[0]", "d4[0]", "d6[0]") LOAD_WEIGHTS("d24-d27")      \
              STEP##P("q14", "q15", "d0[1]", "d2[1]", "d4[1]", "d6[1]") LOAD_WEIGHTS("d28-d31")  \
                  STEP##P("q12", "q13", "d1[0]", "d3[0]", "d5[0]",                               \
                          "d7[0]") "subs %[fours], #1\n" STEP##P("q14", "q15", "d1[1]", "d3[1]", \
                                                                 "d5[1]", "d7[1]") "bne 1b\n"    \
      : SUMS##P, [weights] "+r"(weights), [fours] "+r"(fours)                                    \
      : [step] "r"(kPanel * sizeof(float))                                                       \
      : "memory", "cc", "q0", "q1", "q2", "q3", "q12", "q13", "q14", "q15")

template <std::size_t NumPixels>
HWY_INLINE void multiply_fours(std::size_t fours, const float* weights,
                               const float* (&pixels)[NumPixels], Vec* HWY_RESTRICT sums) {
  if constexpr (NumPixels == 1) { MULTIPLY_FOURS(1); }
  if constexpr (NumPixels == 2) { MULTIPLY_FOURS(2); }
  if constexpr (NumPixels == 3) { MULTIPLY_FOURS(3); }
  if constexpr (NumPixels == 4) { MULTIPLY_FOURS(4); }
}
#endif

// A run of floats under the windows of pixels side by side. On x86-64 an address has room for a
// multiple of the step, so that few pointers are needed.
template <std::size_t NumPixels>
class PixelRun {
 public:
  HWY_INLINE PixelRun(const float* first, std::size_t step) : step_(step) {
    for (std::size_t i = 0; i < kBases; ++i) { bases_[i] = first + i * kFromBase * step; }
  }

  template <std::size_t P>
  HWY_INLINE const float* at(std::size_t k) const {
    return bases_[P / kFromBase] + P % kFromBase * step_ + k;
  }

 private:
#if HWY_ARCH_X86
  static constexpr std::size_t kFromBase = 5;
#else
  static constexpr std::size_t kFromBase = 1;
#endif
  static constexpr std::size_t kBases = (NumPixels + kFromBase - 1) / kFromBase;

  const float* bases_[kBases];
  std::size_t step_;
};

// The lines that the sums of the next tile will be stored to are asked for a tile ahead.
template <std::size_t... Panel>
HWY_INLINE void prefetch_pixel(const float* to, Indices<Panel...>) {
  (__builtin_prefetch(to + Panel * kPanel, 1), ...);
}

// With `HasHalf` half a vector follows the whole ones.
template <bool HasHalf, std::size_t... P, std::size_t... V, std::size_t... Panel>
HWY_INLINE void multiply_columns(const Tile& tile, std::size_t column,
                                 [[maybe_unused]] Indices<P...> pixels, Indices<V...> vectors,
                                 Indices<Panel...> panels) {
  const Floats d;
  const Halves half;
  constexpr std::size_t kVectors = sizeof...(V);
  constexpr std::size_t kWhole = kVectors * kLanes;
  // An unused element costs nothing; C++ has no empty arrays.
  Vec sums[sizeof...(P) * kVectors + (kVectors == 0)];
  [[maybe_unused]] HalfVec halves[sizeof...(P)];
  float* const result = tile.result + column;
  std::size_t step = tile.result_step;
  if (tile.bias == nullptr) {
    (load_pixel<P>(sums, result + P * step, vectors), ...);
    if constexpr (HasHalf) { ((halves[P] = hn::LoadU(half, result + P * step + kWhole)), ...); }
  } else {
    (prefetch_pixel(result + (P + sizeof...(P)) * step, panels), ...);
    const Vec bias[kVectors + (kVectors == 0)] = {hn::LoadU(d, tile.bias + column + V * kLanes)...};
    (set_pixel<P>(sums, bias, vectors), ...);
    if constexpr (HasHalf) {
      const HalfVec last = hn::LoadU(half, tile.bias + column + kWhole);
      ((halves[P] = last), ...);
    }
    if (tile.addend != nullptr) {
      const float* const addend = tile.addend + column;
      (add_pixel<P>(sums, addend + P * tile.addend_step, vectors), ...);
      if constexpr (HasHalf) {
        ((halves[P] = hn::Add(halves[P], hn::LoadU(half, addend + P * tile.addend_step + kWhole))),
         ...);
      }
    }
  }
  const float* filter = tile.filter + column;
  for (std::size_t r = 0; r < tile.num_runs; ++r) {
    const PixelRun<sizeof...(P)> source(tile.runs[r], tile.source_step);
    std::size_t k = 0;
#if HWY_ARCH_ARM_A64
    constexpr auto kPairs = std::make_index_sequence<kVectors / 2>();
    k = tile.run_length / 4 * 4;
    const float* const end = filter + k * kPanel;
    for (std::size_t four = 0; filter != end; four += 4) {
      const Vec factors[] = {hn::LoadU(d, source.template at<P>(four))...};
      multiply_lane<0>(filter, tile.panel_stride, sums, factors, kPairs);
      multiply_lane<1>(filter, tile.panel_stride, sums, factors, kPairs);
      multiply_lane<2>(filter, tile.panel_stride, sums, factors, kPairs);
      multiply_lane<3>(filter, tile.panel_stride, sums, factors, kPairs);
      filter += 4 * kPanel;
    }
#elif HWY_ARCH_ARM_V7 && HWY_TARGET != HWY_SCALAR
    if (tile.run_length >= 4) {
      const float* each[] = {source.template at<P>(0)...};
      multiply_fours(tile.run_length / 4, filter, each, sums);
      k = tile.run_length / 4 * 4;
      filter += k * kPanel;
    }
#endif
    for (; k < tile.run_length; ++k) {
      const Vec weights[kVectors + (kVectors == 0)] = {
          hn::LoadU(d, weights_at<V>(filter, tile.panel_stride))...};
      // The most pixels have one panel alone, which is in the cache, and leave no load for this.
      if constexpr (sizeof...(P) < kTilePixels) {
        (__builtin_prefetch(filter + Panel * tile.panel_stride + kAhead), ...);
      }
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
  bool clamps = tile.is_last;
#if HWY_ARCH_ARM_A64
  // Without a max, half of the instructions.
  if (clamps && tile.max == kInfinite) {
    const Vec min = hn::Set(d, tile.min);
    (raise_pixel<P>(sums, min, vectors), ...);
    clamps = false;
  }
#endif
  if (clamps) {
    const Vec min = hn::Set(d, tile.min);
    const Vec max = hn::Set(d, tile.max);
    (clamp_pixel<P>(sums, min, max, vectors), ...);
    if constexpr (HasHalf) {
      ((halves[P] = clamp(halves[P], lower_half(min), lower_half(max))), ...);
    }
  }
  // Places of pixels are found again: they would take the registers of sums and sources.
  __asm__("" : "+r"(step));
  (store_pixel<P>(sums, result + P * step, vectors), ...);
  if constexpr (HasHalf) { (hn::StoreU(halves[P], half, result + P * step + kWhole), ...); }
}

template <std::size_t NumPanels, bool HasHalf, std::size_t NumPixels>
void multiply(const Tile& tile) {
  constexpr std::size_t kAll = NumPanels * kPanel - (HasHalf ? kPanel / 2 : 0);
  constexpr std::size_t kAtOnce = kColumns < kPanel ? kColumns : kAll;
  for (std::size_t column = 0; column < kAll; column += kAtOnce) {
    multiply_columns<HasHalf && kHalvesVectors>(tile, column, std::make_index_sequence<NumPixels>(),
                                                std::make_index_sequence<kAtOnce / kLanes>(),
                                                std::make_index_sequence<NumPanels>());
  }
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
  // The last vector is copied where it ends, over some of the one before.
  if (size >= kLanes) {
    hn::StoreU(hn::LoadU(d, from + size - kLanes), d, to + size - kLanes);
    return;
  }
  for (; i < size; ++i) { to[i] = from[i]; }
#endif
}

#if HWY_ARCH_ARM_A64
// Rows of up to so many whole vectors, with the last floats once more or alone.
template <std::size_t Whole>
void copy_short_rows(const float* from, std::size_t step, std::size_t count, std::size_t size,
                     float* to) {
  const Floats d;
  const std::size_t last = size - kLanes;
  for (; count > 0; --count) {
    Vec values[Whole + 1];
#pragma GCC unroll 4
    for (std::size_t i = 0; i < Whole; ++i) { values[i] = hn::LoadU(d, from + i * kLanes); }
    values[Whole] = hn::LoadU(d, from + last);
#pragma GCC unroll 4
    for (std::size_t i = 0; i < Whole; ++i) { hn::StoreU(values[i], d, to + i * kLanes); }
    hn::StoreU(values[Whole], d, to + last);
    from += step;
    to += kTileStride;
  }
}
#endif

void copy_rows(const float* from, std::size_t step, std::size_t count, std::size_t size,
               float* to) {
#if HWY_ARCH_ARM_A64
  switch ((size - 1) / kLanes) {
    case 1: return copy_short_rows<1>(from, step, count, size, to);
    case 2: return copy_short_rows<2>(from, step, count, size, to);
    case 3: return copy_short_rows<3>(from, step, count, size, to);
    case 5: return copy_short_rows<5>(from, step, count, size, to);
    default: break;
  }
#endif
  for (std::size_t i = 0; i < count; ++i) {
    copy_row(from, size, to);
    from += step;
    to += kTileStride;
  }
}

template <std::size_t NumPanels, std::size_t... P>
constexpr void list(TileKernels& kernels, Indices<P...>) {
  ((kernels.multiply[NumPanels - 1][P] = multiply<NumPanels, false, P + 1>), ...);
  if constexpr (NumPanels <= kHalvedPanels) {
    ((kernels.multiply_to_half[NumPanels - 1][P] = multiply<NumPanels, true, P + 1>), ...);
  }
}

// Most pixels of a tile of several panels; and those with one panel, with two, and so on.
template <std::size_t OfSeveral, std::size_t... Pixels, std::size_t... P>
constexpr TileKernels list_all(Indices<P...>) {
  constexpr std::size_t kMost[] = {Pixels...};
  TileKernels kernels{kMost[0], OfSeveral, {}, {}, copy_rows};
  (list<P + 1>(kernels, std::make_index_sequence<kMost[P]>()), ...);
  return kernels;
}

template <std::size_t OfSeveral, std::size_t... Pixels>
constexpr TileKernels list_all() {
  return list_all<OfSeveral, Pixels...>(std::make_index_sequence<sizeof...(Pixels)>());
}

}  // namespace

#if HWY_TARGET == HWY_AVX3
extern constexpr TileKernels kKernels = list_all<14, 16, 14, 9, 6>();
#elif HWY_TARGET == HWY_AVX2 || HWY_ARCH_ARM_A64
extern constexpr TileKernels kKernels = list_all<6, 6, 3, 2, 1>();
#elif HWY_ARCH_ARM_V7 && HWY_TARGET != HWY_SCALAR
extern constexpr TileKernels kKernels = list_all<4, 4>();
#else
extern constexpr TileKernels kKernels = list_all<3, 3>();
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
