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
/* Inputs times a pair of outputs: `even` and `odd` have the inputs, `w` the weights. */
#define TIMES_PAIR(both, one)              \
    "ldr %[v], [%[w]], #4\n\t"             \
    "smlad " both ", %[even], %[v], " both \
    "\n\t"                                 \
    "sxtb16 %[v], %[v]\n\t"                \
    "smlad " one ", %[even], %[v], " one   \
    "\n\t"                                 \
    "ldr %[v], [%[w]], #4\n\t"             \
    "smlad " both ", %[odd], %[v], " both  \
    "\n\t"                                 \
    "sxtb16 %[v], %[v]\n\t"                \
    "smlad " one ", %[odd], %[v], " one "\n\t"
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

/* The same with four pairs of outputs. The loop has as many numbers as the processor has registers,
   so its order is not left to the compiler. */
static NOT_INLINED void dot8(int32_t *sums, const int8_t *x, const int16_t *w, int32_t count)
{
#if HAS_DSP || FEW_SIGNS
    int32_t a = sums[0], b = sums[1], c = sums[2], d = sums[3];
    int32_t e = sums[4], f = sums[5], g = sums[6], h = sums[7];
    for (const int16_t *const end = w + 4 * (count & ~3); w < end;) {
#if HAS_DSP
        uint32_t even, odd, v;
        __asm__(
            "ldr %[odd], [%[x]], #4\n\t"
            "sxtb16 %[even], %[odd]\n\t"
            "sxtb16 %[odd], %[odd], ror #8\n\t" TIMES_PAIR("%[a]", "%[b]")
                TIMES_PAIR("%[c]", "%[d]") TIMES_PAIR("%[e]", "%[f]") TIMES_PAIR("%[g]", "%[h]")
            : [x] "+r"(x), [w] "+r"(w), [a] "+r"(a), [b] "+r"(b), [c] "+r"(c), [d] "+r"(d),
              [e] "+r"(e), [f] "+r"(f), [g] "+r"(g), [h] "+r"(h), [even] "=&r"(even),
              [odd] "=&r"(odd), [v] "=&r"(v)
            :
            : "memory");
#else
        ADD_INPUT(x, w);
        ADD_INPUT(x + 2, w + 1);
        ADD_INPUT(x + 1, w + 2);
        ADD_INPUT(x + 3, w + 3);
        w += 16;
        x += 4;
#endif
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

/* Add the products of `count` inputs with the weights of some pairs of outputs to their sums. */
static NOT_INLINED void add_run(int32_t *sums, const int8_t *x, const int16_t *w, int32_t count,
                                int32_t pairs)
{
    if (pairs == 4) {
        dot8(sums, x, w, count);
        return;
    }
    for (int32_t pair = 0; pair < pairs; ++pair)
        dot2(sums + 2 * pair, x, w, count, pair, pairs);
}

static inline void begin_pairs(int32_t *sums)
{
    sums[0] = sums[1] = sums[2] = sums[3] = sums[4] = sums[5] = sums[6] = sums[7] = 0;
}

/* Write the results of some pairs of outputs; by now every input of them has been read. */
static NOT_INLINED int8_t *finish_pairs(int8_t *to, int32_t *sums, const conv_layer *k,
                                        results_s8 *results, int32_t outputs)
{
    results_s8 r = *results;
    for (int32_t rest = outputs; rest > 1; rest -= 2, sums += 2, to += 2) {
        const int32_t both = sums[0], one = LOWERED(sums[1]);
        to[0] = (int8_t)next_result(&r, 2 * one);
        to[1] = (int8_t)next_result(&r, (both - one) >> 7);
    }
    if (outputs & 1)
        *to++ = (int8_t)next_result(&r, 2 * LOWERED(sums[1]));
    *results = r;
    if (is_narrow(k))
        clamp_results(k, to - outputs, outputs);
    return to;
}

/* The results of a window whose inputs lie side by side. */
static inline int8_t *results_of_run(int8_t *to, const int8_t *x, const conv_layer *k, int32_t run)
{
    const int16_t *w = (const int16_t *)k->filter;
    results_s8 results = results_of(k);
    for (int32_t rest = k->out_depth; rest > 0; rest -= 8) {
        const int32_t outputs = rest < 8 ? rest : 8, pairs = (outputs + 1) / 2;
        int32_t sums[8];
        begin_pairs(sums);
        add_run(sums, x, w, run, pairs);
        to = finish_pairs(to, sums, k, &results, outputs);
        w += run * pairs;
    }
    return to;
}

/* Add the products of a row of the window, of which the inputs [before, behind) lie in the image;
   `from` is where those outside would be. */
static void add_border(int32_t *sums, const int8_t *from, const int16_t *w, int32_t run,
                       int32_t before, int32_t behind, const conv_layer *k, int32_t pairs)
{
    int8_t part[24];
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
    results_s8 results = results_of(k);
    for (int32_t rest = k->out_depth; rest > 0; rest -= 8) {
        const int32_t outputs = rest < 8 ? rest : 8, pairs = (outputs + 1) / 2;
        int32_t sums[8];
        begin_pairs(sums);
        for (int32_t row = 0; row < k->kernel_y; ++row, w += run * pairs) {
            if (row < at->rows.first || row >= at->rows.end)
                add_border(sums, NULL, w, run, run, run, k, pairs);
            else if (at->behind - at->before < run)
                add_border(sums, window_row(k, in, at, row), w, run, at->before, at->behind, k,
                           pairs);
            else
                add_run(sums, window_row(k, in, at, row), w, run, pairs);
        }
        to = finish_pairs(to, sums, k, &results, outputs);
    }
    return to;
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
