#include "common.h"
#include "dsp.h"
#include "conv_s8.h"
#include "results_s8.h"
#include "windows_s8.h"
#include "conv_mve_s8.h"
#include "conv_rvv_s8.h"

#if !HAS_MVE && !HAS_RVV
/* Weights of two outputs share a number of 16 bits: one + 256 * other. Products with it have the
   sums of both, and the sums of `one` alone tell them apart. Weights of four pairs of outputs lie
   side by side, then those of the rest; those of a pair for four inputs in the order 0, 2, 1, 3.
   What the source's zero point adds to the sums of whole windows is in the bias. */

/* Whether DSP instructions take several rows of a window at once: those that lie in equal steps. */
#define ROWS_IN_STEPS (HAS_DSP && !ROW_TABLES && !SIZED_ROWS)

/* The sums of eight outputs, what turns them into results, and where these go. */
typedef struct {
    int32_t sums[8];
    results_s8 results;
    int8_t *to;
#if ROWS_IN_STEPS
    int32_t rows, to_next_row;
#endif
} eight_outputs;

/* Add the products of `count` inputs with the weights of one of `pairs` pairs of outputs to its two
   sums. */
static inline void dot2(int32_t *sums, const int8_t *x, const int16_t *w, int32_t count,
                        int32_t pair, int32_t pairs)
{
    int32_t both = sums[0], one = sums[1];
    for (w += 4 * pair; count >= 4; count -= 4, x += 4, w += 4 * pairs) {
#if HAS_DSP
        const uint32_t word = four_bytes(x), even = four_bytes(w), odd = four_bytes(w + 2);
        both = plus_products(plus_products(both, even_bytes(word), even), odd_bytes(word), odd);
        one = plus_products(one, even_bytes(word), even_bytes(even));
        one = plus_products(one, odd_bytes(word), even_bytes(odd));
#else
        both += x[0] * w[0] + x[2] * w[1] + x[1] * w[2] + x[3] * w[3];
        one += x[0] * LIFTED(w[0]) + x[2] * LIFTED(w[1]);
        one += x[1] * LIFTED(w[2]) + x[3] * LIFTED(w[3]);
#endif
    }
    w += pair * (count - 4);
    for (; count > 0; --count, ++x, ++w) {
        both += *x * *w;
        one += *x * LIFTED(*w);
    }
    sums[0] = both;
    sums[1] = one;
}

#if HAS_DSP
/* Inputs times a pair of outputs: r3 and r12 have the inputs, the weights are `at` behind r2. Of
   loads side by side a Cortex-M4 takes all but one in a cycle, and a Cortex-M7 makes products
   beside signs. */
#define TIMES_PAIR(both, one, at, behind, load, signs)                             \
    "ldr lr, [r2, #" behind "];" load "ldr r0, [r2, #" at "];" signs "smlad " both \
    ", r3, r0, " both                                                              \
    "; sxtb16 r0, r0;"                                                             \
    "smlad " both ", r12, lr, " both                                               \
    "; sxtb16 lr, lr;"                                                             \
    "smlad " one ", r3, r0, " one "; smlad " one ", r12, lr, " one ";"

/* The same with the next inputs. */
#define TIMES_INPUTS(both, one, at, behind)                 \
    TIMES_PAIR(both, one, at, behind, "ldr r12, [r1], #4;", \
               "sxtb16 r3, r12; sxtb16 r12, r12, ror #8;")

/* An input that is left times a pair of outputs, whose weights lie at a place. */
#define TIMES_LEFT(both, one, place)                         \
    "ldrsh lr, [" place "]; smlabb " both ", r12, lr, " both \
    "; sxtb lr, lr;"                                         \
    "smlabb " one ", r12, lr, " one ";"

/* Whether sums of eight outputs become results before they leave the registers. */
#define FINISHES_EIGHT (!HALVES_TO_EVEN && !SINGLE_ROUNDING)

/* The results of a pair, as `doubled_result` makes them, whose factors and shifts are `at`. */
#define FINISH_PAIR(both, one, bias, factor, other_bias, other_factor, at, other_at) \
    "ldr r12, [r0, #" bias "]; ldr lr, [r0, #" other_bias                            \
    "];"                                                                             \
    "sub " both ", " both ", " one                                                   \
    ";"                                                                              \
    "add " one ", r12, " one ", lsl #1; add " both ", lr, " both                     \
    ", asr #7;"                                                                      \
    "ldr r12, [r0, #" factor "]; ldr lr, [r0, #" other_factor                        \
    "];"                                                                             \
    "smmulr " one ", " one ", r12; smmulr " both ", " both                           \
    ", lr;"                                                                          \
    "ldrb r12, [r1, #" at "]; ldrb lr, [r1, #" other_at                              \
    "];"                                                                             \
    "add " one ", " one ", " one ", asr #31; add " both ", " both ", " both          \
    ", asr #31;"                                                                     \
    "asr " one ", " one ", r12; asr " both ", " both                                 \
    ", lr;"                                                                          \
    "add " one ", " one ", r2; add " both ", " both                                  \
    ", r2;"                                                                          \
    "ssat " one ", #8, " one ", asr #1; ssat " both ", #8, " both                    \
    ", asr #1;"                                                                      \
    "strb " one ", [r3, #" at "]; strb " both ", [r3, #" other_at "];"

/* Added to a number of inputs, `dot8` writes results in place of the sums. */
#define FINISHED (-0x7fffffff - 1)

/* Added to it, it takes as many in each of the `rows`. */
#define IN_ROWS_OF 0x40000000

/* Add the products of `count` inputs with the weights of four pairs of outputs to their sums, which
   are those of `eight_outputs`. The loop has as many numbers as the processor has registers, so its
   order is not left to the compiler. */
static NOT_INLINED void dot8(int32_t *sums, const int8_t *x, const int16_t *w, int32_t count)
{
    /* r4 to r11 have the sums, and the stack where they are, the number of inputs and the end of
       the weights. r7 and r11 may hold the frame, and r9 static data: these are kept by hand. */
    register int32_t *kept __asm__("r0") = sums;
    register const int8_t *from __asm__("r1") = x;
    register const int16_t *weights __asm__("r2") = w;
    register int32_t inputs __asm__("r3") = count;
    __asm__ volatile(
        "push {r0, r3, r7, r9, r11, lr}\n"
        "ldm r0, {r4-r11}\n"
        "0:\n" /* A row. */
        "bic r12, r3, #3\n"
        "add lr, r2, r12, lsl #3\n"
        "str lr, [sp, #20]\n"
        "cmp r2, lr\n"
        "beq 3f\n"
        "tst r3, #4\n"
        "beq 1f\n"
        "sub r2, r2, #32\n"
        "b 2f\n"
        "1:\n" /* Eight inputs, of which the first four may be left out once. */
        TIMES_INPUTS("r4", "r5", "0", "4")
        TIMES_PAIR("r6", "r7", "8", "12", "", "")
        TIMES_PAIR("r8", "r9", "16", "20", "", "")
        TIMES_PAIR("r10", "r11", "24", "28", "", "")
        "2:\n"
        TIMES_INPUTS("r4", "r5", "32", "36")
        TIMES_PAIR("r6", "r7", "40", "44", "", "")
        TIMES_PAIR("r8", "r9", "48", "52", "", "")
        TIMES_PAIR("r10", "r11", "56", "60", "", "")
        "ldr r0, [sp, #20]\n"
        "add r2, r2, #64\n"
        "cmp r2, r0\n"
        "bne 1b\n"
        "3:\n"
        "ldr r3, [sp, #4]\n"
        "ands r3, r3, #3\n"
        "beq 5f\n"
        "lsl r0, r3, #1\n"
        "4:\n" /* An input that is left. */
        "ldrsb r12, [r1], #1\n"
        TIMES_LEFT("r4", "r5", "r2")
        TIMES_LEFT("r6", "r7", "r2, r0")
        "add lr, r2, r0, lsl #1\n"
        TIMES_LEFT("r8", "r9", "lr")
        "add lr, r2, r0, lsl #1\n"
        TIMES_LEFT("r10", "r11", "lr, r0")
        "add r2, r2, #2\n"
        "subs r3, r3, #1\n"
        "bne 4b\n"
        "add r2, r2, r0, lsl #1\n"
        "add r2, r2, r0\n"
        "5:\n"
#if ROWS_IN_STEPS
        "ldr r3, [sp, #4]\n"
        "tst r3, %[in_rows]\n"
        "beq 6f\n"
        "ldr r12, [sp]\n"
        "ldr r0, [r12, %[rows]]\n"
        "ldr lr, [r12, %[to_next_row]]\n"
        "subs r0, r0, #1\n"
        "str r0, [r12, %[rows]]\n"
        "add r1, r1, lr\n"
        "bne 0b\n"
        "6:\n"
#endif
#if FINISHES_EIGHT
        "ldr r12, [sp]\n"
        "ldr r3, [sp, #4]\n"
        "cmp r3, #0\n"
        "bge 7f\n"
        "add r12, r12, %[results]\n"
        "ldm r12, {r0, r1, r2, r3}\n" /* Scales, shifts, the zero point, and `to`. */
        FINISH_PAIR("r4", "r5", "0", "4", "8", "12", "0", "1")
        FINISH_PAIR("r6", "r7", "16", "20", "24", "28", "2", "3")
        FINISH_PAIR("r8", "r9", "32", "36", "40", "44", "4", "5")
        FINISH_PAIR("r10", "r11", "48", "52", "56", "60", "6", "7")
        "b 8f\n"
        "7:\n"
#endif
        "ldr r0, [sp]\n"
        "stm r0, {r4-r11}\n"
        "8:\n"
        "pop {r0, r3, r7, r9, r11, lr}"
        : "+r"(kept), "+r"(from), "+r"(weights), "+r"(inputs)
        : [results] "i"(offsetof(eight_outputs, results)), [in_rows] "i"(IN_ROWS_OF)
#if ROWS_IN_STEPS
          , [rows] "i"(offsetof(eight_outputs, rows)),
          [to_next_row] "i"(offsetof(eight_outputs, to_next_row))
#endif
        : "r4", "r5", "r6", "r8", "r10", "r12", "lr", "cc", "memory");
}
#elif FEW_SIGNS
/* Add the products of an input with the weights of a pair to its sums. */
#define ADD_LANES(both, one, w)   \
    do {                          \
        const int32_t v = *(w);   \
        both += input * v;        \
        one += input * LIFTED(v); \
        IN_ORDER();               \
    } while (0)

/* The same with four pairs. */
#define ADD_INPUT(x, w)             \
    do {                            \
        const int32_t input = *(x); \
        ADD_LANES(a, b, w);         \
        ADD_LANES(c, d, (w) + 4);   \
        ADD_LANES(e, f, (w) + 8);   \
        ADD_LANES(g, h, (w) + 12);  \
    } while (0)
#else
/* Add the products of an input with the weights of two pairs, four apart, to their sums. */
#define ADD_LANES(x, w)                                  \
    do {                                                 \
        const int32_t input = (x), v = *(w), u = (w)[4]; \
        a += input * v;                                  \
        b += input * (int8_t)v;                          \
        c += input * u;                                  \
        d += input * (int8_t)u;                          \
    } while (0)

static inline void dot_of_pairs(int32_t *sums, const int8_t *x, const int16_t *w,
                                const int16_t *end)
{
    int32_t a = sums[0], b = sums[1], c = sums[2], d = sums[3];
    for (; w < end; w += 16, x += 4) {
        ADD_LANES(x[0], w);
        ADD_LANES(x[2], w + 1);
        ADD_LANES(x[1], w + 2);
        ADD_LANES(x[3], w + 3);
    }
    sums[0] = a;
    sums[1] = b;
    sums[2] = c;
    sums[3] = d;
}
#endif

/* The same with some pairs of outputs. */
static NOT_INLINED void add_pairs(int32_t *sums, const int8_t *x, const int16_t *w, int32_t count,
                                  int32_t pairs)
{
    for (int32_t pair = 0; pair < pairs; ++pair)
        dot2(sums + 2 * pair, x, w, count, pair, pairs);
}

#if !HAS_DSP
/* The same with four pairs of outputs. The loop has as many numbers as the processor has registers,
   so its order is not left to the compiler. */
static NOT_INLINED void dot8(int32_t *sums, const int8_t *x, const int16_t *w, int32_t count)
{
#if FEW_SIGNS
    int32_t a = sums[0], b = sums[1], c = sums[2], d = sums[3];
    int32_t e = sums[4], f = sums[5], g = sums[6], h = sums[7];
    for (const int16_t *const end = w + 4 * (count & ~3); w < end;) {
        ADD_INPUT(x, w);
        ADD_INPUT(x + 2, w + 1);
        ADD_INPUT(x + 1, w + 2);
        ADD_INPUT(x + 3, w + 3);
        w += 16;
        x += 4;
    }
    sums[0] = a;
    sums[1] = b;
    sums[2] = c;
    sums[3] = d;
    sums[4] = e;
    sums[5] = f;
    sums[6] = g;
    sums[7] = h;
#else
    const int32_t whole = count & ~3;
    dot_of_pairs(sums, x, w, w + 4 * whole);
    dot_of_pairs(sums + 4, x, w + 8, w + 8 + 4 * whole);
    x += whole;
    w += 4 * whole;
#endif
    count &= 3;
    if (count == 0)
        return;
    for (int32_t pair = 0; pair < 4; ++pair)
        dot2(sums + 2 * pair, x, w, count, pair, 4);
}
#endif

/* Add the products of `count` inputs with the weights of some pairs of outputs to their sums. */
static inline void add_run(int32_t *sums, const int8_t *x, const int16_t *w, int32_t count,
                           int32_t pairs)
{
    if (pairs == 4)
        dot8(sums, x, w, count);
    else
        add_pairs(sums, x, w, count, pairs);
}

static inline void begin_pairs(int32_t *sums)
{
    sums[0] = sums[1] = sums[2] = sums[3] = sums[4] = sums[5] = sums[6] = sums[7] = 0;
}

/* Write the results of some pairs of outputs; by now every input of them has been read. */
static NOT_INLINED void finish_pairs(eight_outputs *o, const conv_layer *k, int32_t outputs)
{
    results_s8 r = o->results;
    const int32_t *sums = o->sums;
    int8_t *to = o->to;
    for (int32_t rest = outputs; rest > 1; rest -= 2, sums += 2, to += 2) {
        const int32_t both = sums[0], one = LOWERED(sums[1]);
        next_pair(&r, to, 2 * one, (both - one) >> 7);
    }
    if (outputs & 1)
        *to++ = (int8_t)next_result(&r, 2 * LOWERED(sums[1]));
    o->results = r;
    o->to = to;
    if (is_narrow(k))
        clamp_results(k, to - outputs, outputs);
}

#if HAS_DSP && FINISHES_EIGHT
/* Write the results of eight outputs, to whose sums the products of `count` inputs are added before
   that. */
static inline void finish_eight(eight_outputs *o, const conv_layer *k, const int8_t *x,
                                const int16_t *w, int32_t count)
{
    dot8(o->sums, x, w, count + FINISHED);
    o->results.scales += 16;
    o->results.shifts += 8;
    o->to += 8;
    if (is_narrow(k))
        clamp_results(k, o->to - 8, 8);
}
#endif

/* The results of a window whose inputs lie side by side. */
static inline int8_t *results_of_run(int8_t *to, const int8_t *x, const conv_layer *k, int32_t run)
{
    const int16_t *w = (const int16_t *)k->filter;
    eight_outputs o;
    o.results = results_of(k);
    o.to = to;
    for (int32_t rest = k->out_depth; rest > 0; rest -= 8) {
        const int32_t pairs = rest < 8 ? (rest + 1) / 2 : 4;
        begin_pairs(o.sums);
#if HAS_DSP && FINISHES_EIGHT
        if (rest >= 8) {
            finish_eight(&o, k, x, w, run);
            w += run * pairs;
            continue;
        }
#endif
        add_run(o.sums, x, w, run, pairs);
        finish_pairs(&o, k, rest < 8 ? rest : 8);
        w += run * pairs;
    }
    return o.to;
}

/* Add the products of a row of the window, of which the inputs [before, behind) lie in the image;
   `from` is where those outside would be. */
static NOT_INLINED void add_border(int32_t *sums, const int8_t *from, const int16_t *w,
                                   int32_t before, int32_t behind, const conv_layer *k,
                                   int32_t pairs)
{
    int8_t part[24];
    const int32_t run = k->kernel_x * k->depth;
    const int8_t zero = (int8_t)-k->in_offset;
    const int is_whole = k->depth % 4 != 0;
    for (int32_t start = 0, end = 0; start < run; start = end) {
        const int8_t *x = part;
        end = start < before ? before : start < behind ? behind : run;
        if (!is_whole && start >= before && start < behind) {
            x = from + start;
        } else {
            end = is_whole ? run : end - start > 24 ? start + 24 : end;
            for (int32_t i = start; i < end; ++i)
                part[i - start] = i < before || i >= behind ? zero : from[i];
        }
        add_run(sums, x, w + start * pairs, end - start, pairs);
    }
}

/* The results of a window, of whose rows the inputs [before, behind) lie in the image. */
static inline int8_t *results_of_window(int8_t *to, const conv_layer *k, in_rows in,
                                        const window_at *at)
{
    const int32_t run = k->kernel_x * k->depth;
    const int16_t *w = (const int16_t *)k->filter;
    eight_outputs o;
    o.results = results_of(k);
    o.to = to;
#if ROWS_IN_STEPS
    o.to_next_row = k->dilation_y * in.stride - run;
#endif
    for (int32_t rest = k->out_depth; rest > 0; rest -= 8) {
        const int32_t pairs = rest < 8 ? (rest + 1) / 2 : 4;
        begin_pairs(o.sums);
        for (int32_t row = 0, taken = 1; row < k->kernel_y;
             row += taken, w += taken * run * pairs) {
            taken = 1;
            if (row < at->rows.first || row >= at->rows.end)
                add_border(o.sums, NULL, w, run, run, k, pairs);
            else if (at->behind - at->before < run)
                add_border(o.sums, window_row(k, in, at, row), w, at->before, at->behind, k, pairs);
#if ROWS_IN_STEPS
            else if (pairs == 4) {
                o.rows = taken = at->rows.end - row;
                dot8(o.sums, window_row(k, in, at, row), w, run + IN_ROWS_OF);
            }
#endif
            else
                add_run(o.sums, window_row(k, in, at, row), w, run, pairs);
        }
#if HAS_DSP && FINISHES_EIGHT
        if (rest >= 8) {
            finish_eight(&o, k, NULL, w, 0);
            continue;
        }
#endif
        finish_pairs(&o, k, rest < 8 ? rest : 8);
    }
    return o.to;
}
#endif

/* Convolution with a window of one pixel, or a product with a matrix; rows [first, end). */
KERNEL pointwise_pairs_s8(const conv_layer *k, in_rows in, out_rows out, int32_t first, int32_t end)
{
#if HAS_RVV
    results_of_rows(k, in, out, first, end);
#else
    for (int32_t y = first; y < end; ++y) {
        const int8_t *from = (const int8_t *)in_row(in, y * k->stride_y);
        int8_t *to = (int8_t *)out_row(out, y);
        for (int32_t x = 0; x < k->out_width; ++x, from += k->stride_x * k->depth)
            to = results_of_run(to, from, k, k->depth);
    }
#endif
}

#if !HAS_MVE && !HAS_RVV
/* Add the products of a run to the sums of some outputs. */
static inline void add_products(int32_t *sums, const int8_t *x, const conv_layer *k, int32_t output,
                                int32_t count)
{
    const int16_t *w = (const int16_t *)k->filter + output / 2 * k->depth;
    for (; count > 0; count -= 8, sums += 8, w += 4 * k->depth) {
        int32_t found[8];
        begin_pairs(found);
        add_run(found, x, w, k->depth, count < 8 ? (count + 1) / 2 : 4);
        for (int32_t i = 0; i < 8 && i < count; i += 2) {
            const int32_t both = found[i], one = LOWERED(found[i + 1]);
            sums[i] += one;
            if (i + 1 < count)
                sums[i + 1] += (both - one) >> 8;
        }
    }
}
#endif

/* The same by way of sums of 32 bits. */
KERNEL pointwise_sums_pairs_s8(const conv_layer *k, const void *added, in_rows in, out_rows out,
                               int32_t first, int32_t end)
{
    add_to_sums(add_products, k, added, in, out, first, end);
}

/* Convolution, rows [first, end) of the result; pixel by pixel. Inputs of a row of the window lie
   side by side. */
KERNEL conv_pairs_s8(const conv_layer *k, in_rows in, out_rows out, int32_t first, int32_t end)
{
#if HAS_RVV
    results_of_rows(k, in, out, first, end);
#else
    for (int32_t y = first; y < end; ++y) {
        window_at at = window_of_row(k, y);
        int8_t *to = (int8_t *)out_row(out, y);
        for (int32_t x = 0; x < k->out_width; ++x) {
            move_window(&at, k, x * k->stride_x - k->left);
            to = results_of_window(to, k, in, &at);
        }
    }
#endif
}
