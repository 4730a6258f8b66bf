// Depthwise convolutions of floats on 64-bit ARM by windows of three columns: up to four pixels
// side by side in 16 channels.
#pragma once

#if defined(__aarch64__)
#include <cstddef>

#include "kernels/processor.hpp"

namespace arenite {

// Steps are in bytes. Pixels beside the source are left out, not multiplied by zeros.
struct PixelsOfThree {
  const float* const* rows;  // of the source, from any channel on
  std::size_t num_rows;      // at least 1
  std::size_t offset;        // in bytes, from there to the first pixel and channel that are read
  std::size_t pixel_step;
  const float* filter;  // by rows and columns
  std::size_t tap_step;
  const float* bias;
  float* result;
  std::size_t result_step;
  const float* limits;  // least and largest
  int flags;
};

constexpr int kLacksFirst = 1;  // the first column that is read does not exist
constexpr int kLacksLast = 2;
constexpr int kHasLeast = 4;
constexpr int kHasLargest = 8;
constexpr std::size_t kChannelsOfThree = 16;
constexpr std::size_t kPixelsOfThree = 4;

// Compilers do not keep 16 sums, 12 weights and 4 values in the 32 registers: sums of a pixel in
// v(4 p) to v(4 p + 3), weights of a tap in v(16 + 4 k) to v(19 + 4 k), a pixel in v28 to v31. P0K0
// multiplies it by the first tap for the first sums. Each sum takes one product after another as in
// any other kernel.
#define MUL(a, b, c, d, e, f, g, h) \
  "fmla v" #a ".4s, v28.4s, v" #e   \
  ".4s\n"                           \
  "fmla v" #b ".4s, v29.4s, v" #f   \
  ".4s\n"                           \
  "fmla v" #c ".4s, v30.4s, v" #g   \
  ".4s\n"                           \
  "fmla v" #d ".4s, v31.4s, v" #h ".4s\n"
#define BY_TAP(k, a, b, c, d) BY_TAP##k(a, b, c, d)
#define BY_TAP0(a, b, c, d) MUL(a, b, c, d, 16, 17, 18, 19)
#define BY_TAP1(a, b, c, d) MUL(a, b, c, d, 20, 21, 22, 23)
#define BY_TAP2(a, b, c, d) MUL(a, b, c, d, 24, 25, 26, 27)
#define P0(k) BY_TAP(k, 0, 1, 2, 3)
#define P1(k) BY_TAP(k, 4, 5, 6, 7)
#define P2(k) BY_TAP(k, 8, 9, 10, 11)
#define P3(k) BY_TAP(k, 12, 13, 14, 15)

#define READ "ld1 {v28.4s-v31.4s}, [x9], %[pixel_step]\n"
// The columns that a row of windows reads, by number of pixels and their stride, behind the first.
#define FIRST READ P0(0)
#define LAST(sums) "tbnz %w[flags], #1, 9f\n" READ sums "9:\n"
#define COLUMNS11 READ P0(1) LAST(P0(2))
#define COLUMNS21 READ P0(1) P1(0) READ P0(2) P1(1) LAST(P1(2))
#define COLUMNS31 READ P0(1) P1(0) READ P0(2) P1(1) P2(0) READ P1(2) P2(1) LAST(P2(2))
#define COLUMNS41 \
  READ P0(1) P1(0) READ P0(2) P1(1) P2(0) READ P1(2) P2(1) P3(0) READ P2(2) P3(1) LAST(P3(2))
#define COLUMNS12 COLUMNS11
#define COLUMNS22 READ P0(1) READ P0(2) P1(0) READ P1(1) LAST(P1(2))
#define COLUMNS32 READ P0(1) READ P0(2) P1(0) READ P1(1) READ P1(2) P2(0) READ P2(1) LAST(P2(2))
#define COLUMNS42                                                                                \
  READ P0(1) READ P0(2) P1(0) READ P1(1) READ P1(2) P2(0) READ P2(1) READ P2(2) P3(0) READ P3(1) \
      LAST(P3(2))

#define EACH1(X) X(0, 1, 2, 3)
#define EACH2(X) EACH1(X) X(4, 5, 6, 7)
#define EACH3(X) EACH2(X) X(8, 9, 10, 11)
#define EACH4(X) EACH3(X) X(12, 13, 14, 15)
#define START(a, b, c, d) "ld1 {v" #a ".4s-v" #d ".4s}, [%[bias]]\n"
#define FOUR(name, a, b, c, d, with)                                                      \
  name " v" #a ".4s, v" #a ".4s, v" #with ".4s\n" name " v" #b ".4s, v" #b ".4s, v" #with \
       ".4s\n" name " v" #c ".4s, v" #c ".4s, v" #with ".4s\n" name " v" #d ".4s, v" #d   \
       ".4s, v" #with ".4s\n"
#define MAX(a, b, c, d) FOUR("fmax", a, b, c, d, 28)
#define MIN(a, b, c, d) FOUR("fmin", a, b, c, d, 29)
#define STORE(a, b, c, d) "st1 {v" #a ".4s-v" #d ".4s}, [%[result]], %[result_step]\n"

#define ROW "ldr x9, [%[rows]], #8\nadd x9, x9, %[offset]\nsubs %[num_rows], %[num_rows], #1\n"
#define TAPS                                        \
  "ld1 {v16.4s-v19.4s}, [%[filter]], %[tap_step]\n" \
  "ld1 {v20.4s-v23.4s}, [%[filter]], %[tap_step]\n" \
  "ld1 {v24.4s-v27.4s}, [%[filter]], %[tap_step]\n"

// Branches come before what is loaded, so that it is loaded beside products, and sums are stored
// beside the comparisons with limits.
#define DEFINE(P, S)                                                                                \
  ARENITE_INLINE void make_pixels##P##S(PixelsOfThree made) {                                       \
    __asm__ volatile(                                                                             \
        ROW "tbnz %w[flags], #0, 4f\n" EACH##P(START)                                             \
        "1:\n" TAPS FIRST                                                                         \
        "2:\n" COLUMNS##P##S                                                                      \
        "b.eq 5f\n"                                                                               \
        ROW "tbz %w[flags], #0, 1b\n"                                                      \
        "3:\n" TAPS "b 2b\n"                                                                      \
        "4:\n" EACH##P(START) "b 3b\n"                                                            \
        "5:\n"                                                                                    \
        "tbnz %w[flags], #3, 7f\n"                                                                \
        "tbnz %w[flags], #2, 6f\n" EACH##P(STORE)                                                 \
        "b 8f\n"                                                                                  \
        "6:\n"                                                                                    \
        "ld1r {v28.4s}, [%[limits]]\n" EACH##P(MAX) EACH##P(STORE)                                \
        "b 8f\n"                                                                                  \
        "7:\n"                                                                                    \
        "ldr d29, [%[limits]]\ndup v28.4s, v29.s[0]\ndup v29.4s, v29.s[1]\n"                      \
        EACH##P(MAX) EACH##P(MIN) EACH##P(STORE)                                                  \
        "8:\n"                                                                                    \
        : [rows] "+r"(made.rows), [filter] "+r"(made.filter), [num_rows] "+r"(made.num_rows),     \
          [result] "+r"(made.result)                                                              \
        : [offset] "r"(made.offset), [pixel_step] "r"(made.pixel_step),                           \
          [tap_step] "r"(made.tap_step), [bias] "r"(made.bias), [flags] "r"(made.flags),          \
          [limits] "r"(made.limits), [result_step] "r"(made.result_step)                          \
        : "memory", "cc", "x9", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9",       \
          "v10", "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21",     \
          "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31"); \
  }                                                                                                 \
  inline void make_channels##P##S(const PixelsOfThree& given, std::size_t num_channels,             \
                                  std::size_t bias_step) {                                          \
    PixelsOfThree made = given;                                                                     \
    for (; num_channels > 0; num_channels -= kChannelsOfThree) {                                    \
      make_pixels##P##S(made);                                                                      \
      made.offset += kChannelsOfThree * sizeof(float);                                              \
      made.filter += kChannelsOfThree;                                                              \
      made.bias += bias_step;                                                                       \
      made.result += kChannelsOfThree;                                                              \
    }                                                                                               \
  }

DEFINE(1, 1)
DEFINE(2, 1)
DEFINE(3, 1)
DEFINE(4, 1)
DEFINE(1, 2)
DEFINE(2, 2)
DEFINE(3, 2)
DEFINE(4, 2)

// By stride and number of pixels, less one.
constexpr decltype(&make_channels11) kMakeChannels[2][kPixelsOfThree] = {
    {make_channels11, make_channels21, make_channels31, make_channels41},
    {make_channels12, make_channels22, make_channels32, make_channels42}};

#undef MUL
#undef BY_TAP
#undef BY_TAP0
#undef BY_TAP1
#undef BY_TAP2
#undef P0
#undef P1
#undef P2
#undef P3
#undef READ
#undef FIRST
#undef LAST
#undef COLUMNS11
#undef COLUMNS21
#undef COLUMNS31
#undef COLUMNS41
#undef COLUMNS12
#undef COLUMNS22
#undef COLUMNS32
#undef COLUMNS42
#undef EACH1
#undef EACH2
#undef EACH3
#undef EACH4
#undef START
#undef FOUR
#undef MAX
#undef MIN
#undef STORE
#undef ROW
#undef TAPS
#undef DEFINE

}  // namespace arenite
#endif
