#include "kernels/convolution/packed_tile.hpp"

#ifdef ARENITE_ARM64
#include <arm_neon.h>

#include <algorithm>
#include <limits>

#include "kernels/convolution/convolve.hpp"

namespace arenite {

namespace {

// Panels of one pixel to six are multiplied by code of one shape. Compilers neither load four
// vectors at once nor keep 24 sums, six pixels and four weights in the 32 registers.
//
// Weights of a step of the depth are in v0 to v3, those of more steps where no sums are, two steps
// of six pixels in v4 to v6, and the sums of pixel p in v(8 + 4 p) to v(11 + 4 p). Even pixels are
// multiplied by lanes k, odd ones by lanes l of the vectors x, y and z.
#define MUL(sum, weights, pixels, lane) \
  "fmla v" #sum ".4s, v" #weights ".4s, v" #pixels ".s[" #lane "]\n"
#define MUL1(w, k, l, x, y, z, a, b, c, d, e, f) MUL(a, w, x, k)
#define MUL2(w, k, l, x, y, z, a, b, c, d, e, f) \
  MUL1(w, k, l, x, y, z, a, b, c, d, e, f) MUL(b, w, x, l)
#define MUL3(w, k, l, x, y, z, a, b, c, d, e, f) \
  MUL2(w, k, l, x, y, z, a, b, c, d, e, f) MUL(c, w, y, k)
#define MUL4(w, k, l, x, y, z, a, b, c, d, e, f) \
  MUL3(w, k, l, x, y, z, a, b, c, d, e, f) MUL(d, w, y, l)
#define MUL5(w, k, l, x, y, z, a, b, c, d, e, f) \
  MUL4(w, k, l, x, y, z, a, b, c, d, e, f) MUL(e, w, z, k)
#define MUL6(w, k, l, x, y, z, a, b, c, d, e, f) \
  MUL5(w, k, l, x, y, z, a, b, c, d, e, f) MUL(f, w, z, l)

// Of all of a panel, or of the first half.
#define HALF(P, k, l, x, y, z, t, u, v, w) \
  MUL##P(t, k, l, x, y, z, 8, 12, 16, 20, 24, 28) MUL##P(u, k, l, x, y, z, 9, 13, 17, 21, 25, 29)
#define WHOLE(P, k, l, x, y, z, t, u, v, w) \
  HALF(P, k, l, x, y, z, t, u, v, w)        \
  MUL##P(v, k, l, x, y, z, 10, 14, 18, 22, 26, 30) MUL##P(w, k, l, x, y, z, 11, 15, 19, 23, 27, 31)
#define LOAD_HALF(a, b, c, d) "ldp q" #a ", q" #b ", [%[weights]], #64\n"
#define LOAD_WHOLE(a, b, c, d) "ld1 {v" #a ".4s-v" #d ".4s}, [%[weights]], #64\n"

#define PIXELS1 "ldr q4, [%[pixels]], #16\n"
#define PIXELS2 PIXELS1
#define PIXELS3 "ldp q4, q5, [%[pixels]], #32\n"
#define PIXELS4 PIXELS3
#define PIXELS5 "ld1 {v4.4s-v6.4s}, [%[pixels]], #48\n"
#define PIXELS6 PIXELS5
#define MORE_PIXELS "ld1 {v4.4s-v7.4s}, [%[pixels]], #64\n"

// Steps of the depth. In-order processors wait for sums before a load, so that weights of as many
// steps as there are registers for are loaded at once. Of the loop two instructions in 32 steps are
// no part of the work.
#define ONE(P, SIZE) PIXELS##P LOAD_##SIZE(0, 1, 2, 3) SIZE(P, 0, 2, 4, 5, 6, 0, 1, 2, 3)
#define PAIR(P, SIZE, x, y, z)                                                           \
  LOAD_##SIZE(0, 1, 2, 3) LOAD_##SIZE(28, 29, 30, 31) SIZE(P, 0, 2, x, y, z, 0, 1, 2, 3) \
      SIZE(P, 1, 3, x, y, z, 28, 29, 30, 31)
#define PAIRS(P, SIZE, x, y, z)                                                         \
  LOAD_##SIZE(0, 1, 2, 3) LOAD_##SIZE(20, 21, 22, 23) LOAD_##SIZE(24, 25, 26, 27)       \
      LOAD_##SIZE(28, 29, 30, 31) SIZE(P, 0, 2, 4, 5, 5, 0, 1, 2, 3)                    \
          SIZE(P, 1, 3, 4, 5, 5, 20, 21, 22, 23) SIZE(P, 0, 2, x, y, z, 24, 25, 26, 27) \
              SIZE(P, 1, 3, x, y, z, 28, 29, 30, 31)
#define TWO(P, SIZE) PIXELS##P TWO##P(SIZE)
#define TWO1(SIZE) PAIR(1, SIZE, 4, 4, 4)
#define TWO2(SIZE) PAIR(2, SIZE, 4, 4, 4)
#define TWO3(SIZE) PAIR(3, SIZE, 4, 5, 5)
#define TWO4(SIZE) PAIR(4, SIZE, 4, 5, 5)
#define TWO5(SIZE) PAIR(5, SIZE, 4, 5, 6)
#define TWO6(SIZE)                                                                   \
  LOAD_##SIZE(0, 1, 2, 3) SIZE(6, 0, 2, 4, 5, 6, 0, 1, 2, 3) LOAD_##SIZE(0, 1, 2, 3) \
      SIZE(6, 1, 3, 4, 5, 6, 0, 1, 2, 3)
#define FOUR(P, SIZE) FOUR##P(SIZE)
#define FOUR1(SIZE) PIXELS3 PAIRS(1, SIZE, 5, 5, 5)
#define FOUR2(SIZE) PIXELS3 PAIRS(2, SIZE, 5, 5, 5)
#define FOUR3(SIZE) MORE_PIXELS PAIRS(3, SIZE, 6, 7, 7)
#define FOUR4(SIZE) MORE_PIXELS PAIR(4, SIZE, 4, 5, 5) PAIR(4, SIZE, 6, 7, 7)
#define FOUR5(SIZE) TWO(5, SIZE) TWO(5, SIZE)
#define FOUR6(SIZE) TWO(6, SIZE) TWO(6, SIZE)
#define EIGHT(P, SIZE) FOUR(P, SIZE) FOUR(P, SIZE)
#define SIXTEEN(P, SIZE) EIGHT(P, SIZE) EIGHT(P, SIZE)

// Repeats something for each pixel: its number and the first, ..., fourth vector of its sums.
#define EACH1(X) X(0, 8, 9, 10, 11)
#define EACH2(X) EACH1(X) X(1, 12, 13, 14, 15)
#define EACH3(X) EACH2(X) X(2, 16, 17, 18, 19)
#define EACH4(X) EACH3(X) X(3, 20, 21, 22, 23)
#define EACH5(X) EACH4(X) X(4, 24, 25, 26, 27)
#define EACH6(X) EACH5(X) X(5, 28, 29, 30, 31)

#define VECTORS_WHOLE(a, d) "{v" #a ".4s-v" #d ".4s}"
#define START_WHOLE(p, a, b, c, d) "ld1 {v" #a ".4s-v" #d ".4s}, [%[bias]]\n"
#define START_HALF(p, a, b, c, d) "ldp q" #a ", q" #b ", [%[bias]]\n"
#define GO_ON_WHOLE(p, a, b, c, d) "ld1 {v" #a ".4s-v" #d ".4s}, [%[r" #p "]]\n"
#define GO_ON_HALF(p, a, b, c, d) "ldp q" #a ", q" #b ", [%[r" #p "]]\n"
#define ADD(a, b) "fadd v" #a ".4s, v" #a ".4s, v" #b ".4s\n"
#define ADD_HALF(p, a, b, c, d) \
  "ldr x9, [%[addends], #8*" #p "]\nadd x9, x9, %[offset]\nldp q0, q1, [x9]\n" ADD(a, 0) ADD(b, 1)
#define ADD_WHOLE(p, a, b, c, d)                                                                \
  "ldr x9, [%[addends], #8*" #p "]\nadd x9, x9, %[offset]\nld1 {v0.4s-v3.4s}, [x9]\n" ADD(a, 0) \
      ADD(b, 1) ADD(c, 2) ADD(d, 3)
// Of the result that is there.
#define BACK_HALF(p, a, b, c, d) "ldp q0, q1, [%[r" #p "]]\n" ADD(a, 0) ADD(b, 1)
#define BACK_WHOLE(p, a, b, c, d) \
  "ld1 {v0.4s-v3.4s}, [%[r" #p "]]\n" ADD(a, 0) ADD(b, 1) ADD(c, 2) ADD(d, 3)
#define MAX(a) "fmax v" #a ".4s, v" #a ".4s, v0.4s\n"
#define MIN(a) "fmin v" #a ".4s, v" #a ".4s, v1.4s\n"
#define MAX_HALF(p, a, b, c, d) MAX(a) MAX(b)
#define MAX_WHOLE(p, a, b, c, d) MAX(a) MAX(b) MAX(c) MAX(d)
#define MIN_HALF(p, a, b, c, d) MIN(a) MIN(b)
#define MIN_WHOLE(p, a, b, c, d) MIN(a) MIN(b) MIN(c) MIN(d)
#define STORE_WHOLE(p, a, b, c, d) "st1 {v" #a ".4s-v" #d ".4s}, [%[r" #p "]], #64\n"
#define STORE_HALF(p, a, b, c, d) "stp q" #a ", q" #b ", [%[r" #p "]], #32\n"

constexpr int kStarts = 1;
constexpr int kAdds = 2;
constexpr int kHasMin = 4;
constexpr int kHasMax = 8;
constexpr int kAddsUp = 16;

// What all pixels of a panel take; pointers to the result move on.
struct PanelTile {
  const float* pixels;
  const float* weights;
  std::size_t depth;
  const float* bias;
  const float* const* addends;
  std::size_t offset;  // bytes from the first channel
  int flags;
  const float* limits;
};

// Sums are loaded beside the first products, and stored beside the comparisons with limits: what
// does only one of these comes after, or before, what most layers do.
#define DEFINE_PANEL(P, SIZE)                                                              \
  ARENITE_INLINE void multiply_##SIZE##P(PanelTile tile, float*(&result)[kPackedPixels]) { \
    std::size_t loops = tile.depth / 32;                                                   \
    __asm__ volatile( \
        "tbnz %w[flags], #0, 5f\n" EACH##P(GO_ON_##SIZE) \
        "1:\n" \
        "cbz %[loops], 7f\n" \
        "b 6f\n" \
        "2:\n" EACH##P(START_##SIZE) EACH##P(ADD_##SIZE) \
        "b 1b\n" \
        "3:\n" \
        "tbz %[depth], #4, 4f\n" EACH##P(START_##SIZE) SIXTEEN(P, SIZE) \
        "b 8f\n" \
        "4:\n" EACH##P(START_##SIZE) \
        "b 8f\n" \
        "5:\n" \
        "tbnz %w[flags], #1, 2b\n" \
        "cbz %[loops], 3b\n" EACH##P(START_##SIZE) \
        "6:\n" SIXTEEN(P, SIZE) "subs %[loops], %[loops], #1\n" SIXTEEN(P, SIZE) \
        "b.ne 6b\n" \
        "7:\n" \
        "tbz %[depth], #4, 8f\n" SIXTEEN(P, SIZE) \
        "8:\n" \
        "tst %[depth], #15\n" \
        "b.eq 12f\n" \
        "tbz %[depth], #3, 9f\n" EIGHT(P, SIZE) \
        "9:\n" \
        "tbz %[depth], #2, 10f\n" FOUR(P, SIZE) \
        "10:\n" \
        "tbz %[depth], #1, 11f\n" TWO(P, SIZE) \
        "11:\n" \
        "tbz %[depth], #0, 12f\n" ONE(P, SIZE) \
        "12:\n" \
        "tbz %w[flags], #4, 13f\n" EACH##P(BACK_##SIZE) \
        "13:\n" \
        "tbnz %w[flags], #3, 15f\n" \
        "tbnz %w[flags], #2, 14f\n" EACH##P(STORE_##SIZE) \
        "b 16f\n" \
        "14:\n" \
        "ld1r {v0.4s}, [%[limits]]\n" EACH##P(MAX_##SIZE) EACH##P(STORE_##SIZE) \
        "b 16f\n" \
        "15:\n" \
        "ldr d1, [%[limits]]\ndup v0.4s, v1.s[0]\ndup v1.4s, v1.s[1]\n" \
        EACH##P(MAX_##SIZE) EACH##P(MIN_##SIZE) EACH##P(STORE_##SIZE) \
        "16:\n" \
        : [r0] "+r"(result[0]), [r1] "+r"(result[1]), [r2] "+r"(result[2]), [r3] "+r"(result[3]), \
          [r4] "+r"(result[4]), [r5] "+r"(result[5]), [pixels] "+r"(tile.pixels), \
          [weights] "+r"(tile.weights), [loops] "+r"(loops) \
        : [depth] "r"(tile.depth), [bias] "r"(tile.bias), [addends] "r"(tile.addends), \
          [offset] "r"(tile.offset), [flags] "r"(tile.flags), [limits] "r"(tile.limits) \
        : "memory", "cc", "x9", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", \
          "v10", "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", \
          "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31");                                                                    \
  }

#define DEFINE_PANELS(P)                                                                        \
  DEFINE_PANEL(P, WHOLE)                                                                        \
  DEFINE_PANEL(P, HALF)                                                                         \
  void multiply_panels##P(const PanelTile& given, std::size_t count, std::size_t rest,          \
                          PanelSteps steps, float* const* results) {                            \
    PanelTile tile = given;                                                                     \
    float* result[] = {results[0], results[1], results[2], results[3], results[4], results[5]}; \
    for (; count > 0; --count) {                                                                \
      multiply_WHOLE##P(tile, result);                                                          \
      tile.weights += steps.weights;                                                            \
      tile.bias += steps.bias;                                                                  \
      tile.offset += kPanel * sizeof(float);                                                    \
    }                                                                                           \
    if (rest > 0) { multiply_HALF##P(tile, result); }                                           \
  }

// Floats from a panel to the next.
struct PanelSteps {
  std::size_t weights;
  std::size_t bias;
};

DEFINE_PANELS(1)
DEFINE_PANELS(2)
DEFINE_PANELS(3)
DEFINE_PANELS(4)
DEFINE_PANELS(5)
DEFINE_PANELS(6)

constexpr decltype(&multiply_panels1) kMultiply[kPackedPixels] = {
    multiply_panels1, multiply_panels2, multiply_panels3,
    multiply_panels4, multiply_panels5, multiply_panels6};

// A panel that reaches beyond the last channel is made elsewhere, and some of it is kept.
// Its room on the stack is not that of all tiles.
[[gnu::noinline]] void multiply_edge(const PackedTile& given, PanelTile tile, std::size_t first,
                                     std::size_t width) {
  float bias[kPanel] = {};
  float sums[kPackedPixels][kPanel] = {};
  float added[kPackedPixels][kPanel] = {};
  float* results[kPackedPixels] = {};
  const float* addends[kPackedPixels] = {};
  if (given.bias != nullptr) { std::copy_n(given.bias + first, width, bias); }
  for (std::size_t p = 0; p < given.num_pixels; ++p) {
    if (!given.is_first || given.adds_up) { std::copy_n(given.result[p] + first, width, sums[p]); }
    if (given.addend != nullptr) { std::copy_n(given.addend[p] + first, width, added[p]); }
    results[p] = sums[p];
    addends[p] = added[p];
  }
  tile.bias = bias;
  tile.addends = addends;
  tile.offset = 0;
  const bool is_half = width <= kPanel / 2;
  kMultiply[given.num_pixels - 1](tile, is_half ? 0 : 1, is_half ? 1 : 0, {}, results);
  for (std::size_t p = 0; p < given.num_pixels; ++p) {
    std::copy_n(sums[p], width, given.result[p] + first);
  }
}

// Of the second pixel of a pair follows what the first has of two steps.
template <std::size_t Pairs>
ARENITE_INLINE void pack_pairs(const float* const* pixels, std::size_t depth, float* packed) {
  const float* from[2 * Pairs];
  std::copy_n(pixels, 2 * Pairs, from);
  for (; depth >= 4; depth -= 4) {
    float64x2_t values[2 * Pairs];
#pragma GCC unroll 6
    for (std::size_t p = 0; p < 2 * Pairs; ++p) {
      values[p] = vreinterpretq_f64_f32(vld1q_f32(from[p]));
      from[p] += 4;
    }
#pragma GCC unroll 3
    for (std::size_t p = 0; p < Pairs; ++p) {
      const float64x2_t first = vzip1q_f64(values[2 * p], values[2 * p + 1]);
      const float64x2_t second = vzip2q_f64(values[2 * p], values[2 * p + 1]);
      vst1q_f32(packed + 4 * p, vreinterpretq_f32_f64(first));
      vst1q_f32(packed + 4 * (Pairs + p), vreinterpretq_f32_f64(second));
    }
    packed += 8 * Pairs;
  }
  for (std::size_t k = 0; k < depth; ++k) {
    for (std::size_t p = 0; p < 2 * Pairs; ++p) {
      packed[(k / 2 * 2 * Pairs + p) * 2 + k % 2] = from[p][k];
    }
  }
}

// The same of six pixels, with instructions that load and store several vectors. Those that
// transpose do what ZIP does for halves, and Cortex-A72 splits ZIP into three.
ARENITE_INLINE void pack_six(const float* const* pixels, std::size_t depth, float* packed) {
  const float* from[kPackedPixels];
  std::copy_n(pixels, kPackedPixels, from);
  const std::size_t rest = depth % 8;
  if (std::size_t eights = depth / 8; eights > 0) {
    __asm__ volatile(
        "1:\n"
        "ldp q0, q1, [%[p0]], #32\n"
        "ldp q2, q3, [%[p1]], #32\n"
        "ldp q4, q5, [%[p2]], #32\n"
        "ldp q6, q7, [%[p3]], #32\n"
        "ldp q16, q17, [%[p4]], #32\n"
        "ldp q18, q19, [%[p5]], #32\n"
        "trn1 v20.2d, v0.2d, v2.2d\n"
        "trn1 v21.2d, v4.2d, v6.2d\n"
        "trn1 v22.2d, v16.2d, v18.2d\n"
        "trn2 v23.2d, v0.2d, v2.2d\n"
        "trn2 v24.2d, v4.2d, v6.2d\n"
        "trn2 v25.2d, v16.2d, v18.2d\n"
        "st1 {v20.4s-v23.4s}, [%[packed]], #64\n"
        "trn1 v26.2d, v1.2d, v3.2d\n"
        "trn1 v27.2d, v5.2d, v7.2d\n"
        "trn1 v28.2d, v17.2d, v19.2d\n"
        "trn2 v29.2d, v1.2d, v3.2d\n"
        "trn2 v30.2d, v5.2d, v7.2d\n"
        "trn2 v31.2d, v17.2d, v19.2d\n"
        "st1 {v24.4s-v27.4s}, [%[packed]], #64\n"
        "subs %[eights], %[eights], #1\n"
        "st1 {v28.4s-v31.4s}, [%[packed]], #64\n"
        "b.ne 1b\n"
        : [p0] "+r"(from[0]), [p1] "+r"(from[1]), [p2] "+r"(from[2]), [p3] "+r"(from[3]),
          [p4] "+r"(from[4]), [p5] "+r"(from[5]), [packed] "+r"(packed), [eights] "+r"(eights)
        :
        : "memory", "cc", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v16", "v17", "v18",
          "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30",
          "v31");
  }
  if (rest > 0) { pack_pairs<3>(from, rest, packed); }
}

}  // namespace

void pack_pixels(const float* const* pixels, std::size_t num_pixels, std::size_t depth,
                 float* packed) {
  const float* padded[kPackedPixels];
  std::copy_n(pixels, num_pixels, padded);
  if (num_pixels % 2 == 1) { padded[num_pixels] = padded[num_pixels - 1]; }
  switch ((num_pixels + 1) / 2) {
    case 1: return pack_pairs<1>(padded, depth, packed);
    case 2: return pack_pairs<2>(padded, depth, packed);
    default: return pack_six(padded, depth, packed);
  }
}

void pack_columns(const float* columns, std::size_t stride, std::size_t num_pixels,
                  std::size_t depth, float* packed) {
  const std::size_t padded = num_pixels + num_pixels % 2;
  const std::size_t last = num_pixels - 1;
  for (std::size_t k = 0; k < depth; k += 2, packed += 2 * padded) {
    const float* const one = columns + k * stride;
    const float* const two = k + 1 < depth ? one + stride : one;
    std::size_t p = 0;
    if (num_pixels >= 4) {
      vst2q_f32(packed, float32x4x2_t{{vld1q_f32(one), vld1q_f32(two)}});
      p = 4;
    }
    if (num_pixels - p >= 2) {
      vst2_f32(packed + 2 * p, float32x2x2_t{{vld1_f32(one + p), vld1_f32(two + p)}});
      p += 2;
    }
    for (; p < padded; ++p) {
      packed[2 * p] = one[std::min(p, last)];
      packed[2 * p + 1] = two[std::min(p, last)];
    }
  }
}

void multiply_packed(const PackedTile& tile) {
  static constexpr float kNoBias[kPanel] = {};
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  const float limits[2] = {tile.min, tile.max};
  int flags = 0;
  if (tile.is_first) { flags |= kStarts; }
  if (tile.is_first && tile.addend != nullptr) { flags |= kAdds; }
  if (tile.adds_up) { flags |= kAddsUp; }
  if (tile.is_last && tile.min != -kInfinite) { flags |= kHasMin; }
  if (tile.is_last && tile.max != kInfinite) { flags |= kHasMax; }
  const PanelSteps steps{tile.panel_stride, tile.bias == nullptr ? 0 : kPanel};
  const PanelTile panel{
      tile.pixels, tile.filter, tile.depth, tile.bias == nullptr ? kNoBias : tile.bias,
      tile.addend, 0,           flags,      limits};
  const std::size_t count = tile.channels / kPanel;
  const std::size_t rest = tile.channels % kPanel;
  const bool is_edge = rest > 0 && rest != kPanel / 2;
  if (count > 0 || !is_edge) {
    kMultiply[tile.num_pixels - 1](panel, count, is_edge ? 0 : rest, steps, tile.result);
  }
  if (is_edge) {
    PanelTile last = panel;
    last.weights += count * tile.panel_stride;
    multiply_edge(tile, last, count * kPanel, rest);
  }
}

}  // namespace arenite
#endif
