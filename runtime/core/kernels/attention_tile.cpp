#include "kernels/attention_tile.hpp"

#ifdef ARENITE_ARM64
#include <arm_neon.h>

#include <algorithm>

#include "kernels/attention.hpp"

namespace arenite {

namespace {

static_assert(kAttentionQueries == 16 && kAttentionRows == 4);

// A tile has 16 sums, those of row r in v(16 + 4 r) to v(19 + 4 r). Two rows of the panel, with one
// element of each query, are in v0 to v3 and v4 to v7: loads come together, as small processors
// finish instructions in order, and those after a multiplication wait for it.
#define MUL(sum, panel, left) "fmla v" #sum ".4s, v" #panel ".4s, v" left ";"
#define ROW(a, b, c, d, left, p, q, r, s) \
  MUL(a, p, left) MUL(b, q, left) MUL(c, r, left) MUL(d, s, left)
#define ROW0(left, ...) ROW(16, 17, 18, 19, left, __VA_ARGS__)
#define ROW1(left, ...) ROW(20, 21, 22, 23, left, __VA_ARGS__)
#define ROW2(left, ...) ROW(24, 25, 26, 27, left, __VA_ARGS__)
#define ROW3(left, ...) ROW(28, 29, 30, 31, left, __VA_ARGS__)
#define EVEN 0, 1, 2, 3
#define ODD 4, 5, 6, 7
#define LOAD_EVEN "ld1 {v0.4s-v3.4s}, [%[panel]], #64;"
#define LOAD_ODD "ld1 {v4.4s-v7.4s}, [%[panel]], #64;"
#define SUMS(X) X(16, 19) X(20, 23) X(24, 27) X(28, 31)
#define LOAD_SUMS(a, d) "ld1 {v" #a ".4s-v" #d ".4s}, [%[sums]], #64;"
#define STORE_SUMS(a, d) "st1 {v" #a ".4s-v" #d ".4s}, [%[sums]], #64;"
#define VECTORS                                                                                  \
  "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v16", "v17", "v18", \
      "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31"

// Of four rows, four steps of the depth are in v8 to v11.
#define LOAD_KEYS \
  "ldr q8, [%[r0]], #16; ldr q9, [%[r1]], #16; ldr q10, [%[r2]], #16; ldr q11, [%[r3]], #16;"
#define STEP(k, ...)               \
  ROW0("8.s[" #k "]", __VA_ARGS__) \
  ROW1("9.s[" #k "]", __VA_ARGS__) \
  ROW2("10.s[" #k "]", __VA_ARGS__) ROW3("11.s[" #k "]", __VA_ARGS__)
#define TWO_STEPS(k, l) LOAD_EVEN LOAD_ODD STEP(k, EVEN) STEP(l, ODD)

// Sixteen scores of each of four keys.
ARENITE_INLINE void score_four(const float* const (&keys)[kAttentionRows], const float* panel,
                               std::size_t depth, float* sums) {
  const float* rows[kAttentionRows] = {keys[0], keys[1], keys[2], keys[3]};
  std::size_t loops = depth / 4;
  __asm__ volatile(
      "movi v16.4s, #0; movi v17.4s, #0; movi v18.4s, #0; movi v19.4s, #0;"
      "movi v20.4s, #0; movi v21.4s, #0; movi v22.4s, #0; movi v23.4s, #0;"
      "movi v24.4s, #0; movi v25.4s, #0; movi v26.4s, #0; movi v27.4s, #0;"
      "movi v28.4s, #0; movi v29.4s, #0; movi v30.4s, #0; movi v31.4s, #0;"
      "1:" LOAD_KEYS "subs %[loops], %[loops], #1;" TWO_STEPS(0, 1)
          TWO_STEPS(2, 3) "b.ne 1b;" SUMS(STORE_SUMS)
      : [r0] "+r"(rows[0]), [r1] "+r"(rows[1]), [r2] "+r"(rows[2]), [r3] "+r"(rows[3]),
        [panel] "+r"(panel), [loops] "+r"(loops), [sums] "+r"(sums)
      :
      : "memory", "cc", VECTORS);
}

// Four elements of a row of values are in v8 or v9.
#define KEY(left, ...)            \
  ROW0(left ".s[0]", __VA_ARGS__) \
  ROW1(left ".s[1]", __VA_ARGS__) ROW2(left ".s[2]", __VA_ARGS__) ROW3(left ".s[3]", __VA_ARGS__)
#define LOAD_VALUES(v) "ld1 {v" #v ".4s}, [%[values]], %[stride];"
#define TWO_KEYS LOAD_VALUES(8) LOAD_VALUES(9) LOAD_EVEN LOAD_ODD KEY("8", EVEN) KEY("9", ODD)
#define TIMES(a, b) "fmul v" #a ".4s, v" #a ".4s, v" #b ".4s;"
#define SCALE(a, b, c, d) TIMES(a, 0) TIMES(b, 1) TIMES(c, 2) TIMES(d, 3)

// Sixteen totals of each of four elements.
ARENITE_INLINE void add_four(const float* values, std::size_t stride, const float* panel,
                             std::size_t num_keys, const float* factors, float* sums) {
  std::size_t loops = num_keys / 4;
  stride *= sizeof(float);
  __asm__ volatile(
      "ld1 {v0.4s-v3.4s}, [%[factors]];"
      SUMS(LOAD_SUMS) "sub %[sums], %[sums], #256;"
      SCALE(16, 17, 18, 19) SCALE(20, 21, 22, 23) SCALE(24, 25, 26, 27) SCALE(28, 29, 30, 31)
      "cbz %[loops], 2f;"
      "1: subs %[loops], %[loops], #1;" TWO_KEYS TWO_KEYS "b.ne 1b;"
      "2: tbz %[num_keys], #1, 3f;" TWO_KEYS
      "3: tbz %[num_keys], #0, 4f;" LOAD_VALUES(8) LOAD_EVEN KEY("8", EVEN)
      "4:" SUMS(STORE_SUMS)
      : [values] "+r"(values), [panel] "+r"(panel), [loops] "+r"(loops), [sums] "+r"(sums)
      : [stride] "r"(stride), [num_keys] "r"(num_keys), [factors] "r"(factors)
      : "memory", "cc", VECTORS);
}

}  // namespace

void score_keys(const float* keys, std::size_t stride, std::size_t count, const float* queries,
                std::size_t depth, float* scores) {
  for (std::size_t j = 0; j < count;
       j += kAttentionRows, scores += kAttentionRows * kAttentionQueries) {
    const float* rows[kAttentionRows];
    for (std::size_t r = 0; r < kAttentionRows; ++r) {
      rows[r] = keys + std::min(j + r, count - 1) * stride;
    }
    score_four(rows, queries, depth, scores);
  }
}

void add_values(const float* values, std::size_t stride, std::size_t width, const float* weights,
                std::size_t num_keys, const float* factors, float* totals) {
  for (std::size_t v = 0; v < width; v += kAttentionRows) {
    add_four(values + v, stride, weights, num_keys, factors, totals + v * kAttentionQueries);
  }
}

namespace {

constexpr std::size_t kVectors = kAttentionQueries / 4;
#define EACH _Pragma("GCC unroll 4") for (std::size_t i = 0; i < kVectors; ++i)

// exponential_below, of all queries: an operation of each before the next one, as small processors
// wait for results. What is too low is bounded where the power of two has no bits left.
ARENITE_INLINE void exponentials(float32x4_t (&x)[kVectors]) {
  constexpr float kRounder = 12'582'912.0f + 127.0f;
  constexpr float kLowest = -88.0f;
  float32x4_t shifted[kVectors];
  float32x4_t power[kVectors];
  EACH x[i] = vmaxq_f32(x[i], vdupq_n_f32(kLowest));
  EACH shifted[i] = vfmaq_f32(vdupq_n_f32(kRounder), x[i], vdupq_n_f32(1.44269504f));
  EACH power[i] = vsubq_f32(shifted[i], vdupq_n_f32(kRounder));
  EACH shifted[i] = vreinterpretq_f32_u32(vshlq_n_u32(vreinterpretq_u32_f32(shifted[i]), 23));
  EACH x[i] = vfmsq_f32(x[i], power[i], vdupq_n_f32(0.693147181f));
  float32x4_t series[kVectors];
  EACH series[i] = vfmaq_f32(vdupq_n_f32(0.041898161f), x[i], vdupq_n_f32(0.0082902713f));
  EACH series[i] = vfmaq_f32(vdupq_n_f32(0.16667639f), x[i], series[i]);
  EACH series[i] = vfmaq_f32(vdupq_n_f32(0.49999148f), x[i], series[i]);
  EACH series[i] = vfmaq_f32(vdupq_n_f32(0.9999997f), x[i], series[i]);
  EACH x[i] = vmulq_f32(x[i], shifted[i]);
  EACH x[i] = vfmaq_f32(shifted[i], x[i], series[i]);
}

ARENITE_INLINE void load(const float* from, float32x4_t (&vectors)[kVectors]) {
  EACH vectors[i] = vld1q_f32(from + 4 * i);
}
ARENITE_INLINE void store(const float32x4_t (&vectors)[kVectors], float* to) {
  EACH vst1q_f32(to + 4 * i, vectors[i]);
}

}  // namespace

void weigh_keys(float* scores, std::size_t num_keys, float* tops, float* sums, float* factors) {
  float32x4_t top[kVectors];
  float32x4_t x[kVectors];
  load(tops, top);
  for (std::size_t j = 0; j < num_keys; ++j) {
    load(scores + j * kAttentionQueries, x);
    EACH top[i] = vmaxnmq_f32(top[i], x[i]);
  }
  float32x4_t sum[kVectors];
  load(tops, x);
  load(sums, sum);
  EACH x[i] = vsubq_f32(x[i], top[i]);
  exponentials(x);
  EACH sum[i] = vmulq_f32(sum[i], x[i]);
  store(x, factors);
  store(top, tops);
  for (std::size_t j = 0; j < num_keys; ++j) {
    float* const at = scores + j * kAttentionQueries;
    load(at, x);
    EACH x[i] = vsubq_f32(x[i], top[i]);
    exponentials(x);
    store(x, at);
    EACH sum[i] = vaddq_f32(sum[i], x[i]);
  }
  store(sum, sums);
}

#undef EACH
}  // namespace arenite
#endif
