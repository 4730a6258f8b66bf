#include "common.h"
#include "dsp.h"
#include "conv_s8.h"
#include "results_s8.h"
#include "windows_s8.h"
#include "depthwise_mve_s8.h"
#include "depthwise_rvv_s8.h"

/* Whether small windows have a function of their own. */
#define HAS_SMALL (HAS_DSP && !HAS_MVE)

#if !HAS_MVE && !HAS_RVV
/* The sums of four channels. */
typedef struct {
    int32_t a, b, c, d;
} four_sums;

static inline four_sums no_sums(void)
{
    four_sums s;
    s.a = s.b = s.c = s.d = 0;
    return s;
}

#if HAS_DSP
/* Products of four channels, which are at `from`, with their weights; `w` is behind these. Loads
   lie side by side, and signs beside products, so that a Cortex-M7 makes two at once. */
#define TIMES_FOUR(from, load)          \
    "ldr %[v], [%[w]], #4\n\t"          \
    "ldr %[x], " from "\n\t" load       \
    "sxtb16 %[u], %[v]\n\t"             \
    "sxtb16 %[t], %[x]\n\t"             \
    "sxtb16 %[x], %[x], ror #8\n\t"     \
    "smlabb %[a], %[t], %[u], %[a]\n\t" \
    "sxtb16 %[v], %[v], ror #8\n\t"     \
    "smlatt %[c], %[t], %[u], %[c]\n\t" \
    "smlatt %[d], %[x], %[v], %[d]\n\t" \
    "smlabb %[b], %[x], %[v], %[b]\n\t"
#endif

static inline const int8_t *add_four(four_sums *s, const int8_t *from, const int8_t *w)
{
#if HAS_DSP
    uint32_t x, v, t, u;
    __asm__(TIMES_FOUR("[%[from]]", "")
            : [w] "+r"(w), [a] "+r"(s->a), [b] "+r"(s->b), [c] "+r"(s->c), [d] "+r"(s->d),
              [x] "=&r"(x), [v] "=&r"(v), [t] "=&r"(t), [u] "=&r"(u)
            : [from] "r"(from)
            : "memory");
    return w;
#else
    s->a += LIFTED_BYTE(from + 0) * w[0];
    s->b += LIFTED_BYTE(from + 1) * w[1];
    IN_ORDER();
    s->c += LIFTED_BYTE(from + 2) * w[2];
    s->d += LIFTED_BYTE(from + 3) * w[3];
    IN_ORDER();
    return w + 4;
#endif
}

#if HAS_DSP
/* The same for three taps, `step` apart, of each row up to one that is null; their first taps are
   `left` behind where rows begin. */
static inline void add_rows(four_sums *s, const int8_t *const *rows, int32_t left, int32_t step,
                            const int8_t **w)
{
    uint32_t x, v, t, u;
    const int8_t *from;
    /* Of no known value, it shares no register with a sum, which begins as 0. */
    __asm__("" : "+r"(left));
    __asm__("ldr %[from], [%[rows]]\n"
            "1:\n\t"
            "add %[from], %[from], %[left]\n\t" TIMES_FOUR("[%[from]]", "")
                TIMES_FOUR("[%[from], %[step]]", "")
                    TIMES_FOUR("[%[from], %[step], lsl #1]", "ldr %[from], [%[rows], #4]!\n\t")
            "cmp %[from], #0\n\t"
            "bne 1b"
            : [rows] "+r"(rows), [w] "+r"(*w), [a] "+r"(s->a), [b] "+r"(s->b), [c] "+r"(s->c),
              [d] "+r"(s->d), [x] "=&r"(x), [v] "=&r"(v), [t] "=&r"(t), [u] "=&r"(u),
              [from] "=&r"(from)
            : [left] "r"(left), [step] "r"(step)
            : "cc", "memory");
}
#else
/* The same for three taps, whose inputs are `step` apart. */
static inline const int8_t *add_three_fours(four_sums *s, const int8_t *from, int32_t step,
                                            const int8_t *w)
{
    w = add_four(s, from, w);
    w = add_four(s, from + step, w);
    return add_four(s, from + 2 * step, w);
}
#endif

#if HAS_DSP
/* Three taps a row, and up to as many rows. */
static inline int is_small(const conv_layer *k)
{
    return k->kernel_x == 3 && k->kernel_y <= 3;
}

/* Copy the taps in the image of four channels to their places among those of a window. */
static inline void gather_taps(int8_t *part, const conv_layer *k, const depthwise_window *at,
                               int32_t channel)
{
    const int32_t step = k->dilation_x * k->depth, first = at->columns.first;
    for (int32_t row = 0; row < k->kernel_y; ++row) {
        const int8_t *x = at->rows[row];
        if (x == NULL)
            continue;
        x += at->left + channel + first * step;
        for (int32_t i = first; i < at->columns.end; ++i, x += step)
            memcpy(part + 12 * row + 4 * i, x, 4);
    }
}

/* One pixel of a small window. At a border of the image its taps are gathered. */
static NOT_INLINED void small_pixel(const conv_layer *k, depthwise_window *at, int8_t *to)
{
    int8_t part[36];
    const int8_t *const *rows = at->rows;
    const int8_t *w = (const int8_t *)k->filter;
    int32_t step = k->dilation_x * k->depth, left = at->left;
    results_s8 r = results_of(k);
    if (rows[0] == NULL || rows[k->kernel_y - 1] == NULL ||
        at->columns.end - at->columns.first < 3) {
        memset(part, -k->in_offset, sizeof part);
        for (int32_t row = 0; row < 3; ++row)
            at->rows[4 + row] = row < k->kernel_y ? part + 12 * row : NULL;
        at->rows[7] = NULL;
        rows = at->rows + 4;
        step = 4;
        left = 0;
    }
    for (int32_t channel = 0; channel < k->depth; channel += 4, to += 4) {
        four_sums s = no_sums();
        if (rows != at->rows)
            gather_taps(part, k, at, channel);
        add_rows(&s, rows, rows == at->rows ? left + channel : 0, step, &w);
        next_pair(&r, to, 2 * s.a, 2 * s.b);
        next_pair(&r, to + 2, 2 * s.c, 2 * s.d);
        if (is_narrow(k))
            clamp_results(k, to, 4);
    }
}
#endif

/* One pixel. */
static NOT_INLINED void depthwise_pixel(const conv_layer *k, const depthwise_window *at, int8_t *to)
{
    const int32_t step = k->dilation_x * k->depth, width = k->kernel_x;
    const int8_t zero = (int8_t)-k->in_offset;
    const int8_t zeros[4] = {zero, zero, zero, zero};
    const taps columns = at->columns;
#if !HAS_DSP
    const int is_whole = columns.end - columns.first == width;
#endif
    const int8_t *w = (const int8_t *)k->filter;
    results_s8 r = results_of(k);
    for (int32_t channel = 0; channel < k->depth; channel += 4, to += 4) {
        four_sums s = no_sums();
        for (const int8_t *const *row = at->rows; row < at->rows + k->kernel_y; ++row) {
            const int8_t *x = *row == NULL ? zeros : *row + at->left + channel;
            const int32_t apart = *row == NULL ? 0 : step;
#if !HAS_DSP
            if (width == 3 && (is_whole || apart == 0)) {
                w = add_three_fours(&s, x, apart, w);
                continue;
            }
#endif
            for (int32_t i = 0; i < width; ++i, x += apart)
                w = add_four(&s, i < columns.first || i >= columns.end ? zeros : x, w);
        }
        next_pair(&r, to, 2 * LOWERED(s.a), 2 * LOWERED(s.b));
        next_pair(&r, to + 2, 2 * LOWERED(s.c), 2 * LOWERED(s.d));
        if (is_narrow(k))
            clamp_results(k, to, 4);
    }
}
#endif

/* Depthwise convolution of channels in fours, rows [first, end) of the result. Weights of four
   channels lie side by side, those of a window one behind the other. What offsets add to the sums
   of whole windows is in the bias. */
KERNEL depthwise_fours_s8(const conv_layer *k, in_rows in, out_rows out, int32_t first, int32_t end)
{
#if HAS_RVV
    for (int32_t y = first; y < end; ++y)
        depthwise_row(k, in, (int8_t *)out_row(out, y), y);
#else
    depthwise_window at;
#if HAS_MVE
    memset(at.zeros, -k->in_offset, sizeof at.zeros);
#endif
    for (int32_t y = first; y < end; ++y) {
        const int32_t top = y * k->stride_y - k->top;
        const taps rows = taps_inside(top, k->dilation_y, k->kernel_y, k->height);
        int8_t *to = (int8_t *)out_row(out, y);
        for (int32_t row = 0; row < k->kernel_y; ++row) {
            at.rows[row] = NULL;
            if (row >= rows.first && row < rows.end)
                at.rows[row] = (const int8_t *)in_row(in, top + row * k->dilation_y);
        }
#if HAS_SMALL
        if (is_small(k))
            at.rows[k->kernel_y] = NULL;
#endif
        for (int32_t x = 0; x < k->out_width; ++x, to += k->depth) {
            const int32_t left = x * k->stride_x - k->left;
            at.left = left * k->depth;
            at.columns = taps_inside(left, k->dilation_x, k->kernel_x, k->width);
#if HAS_MVE
            find_taps(&at, k, 0);
#endif
#if HAS_SMALL
            if (is_small(k)) {
                small_pixel(k, &at, to);
                continue;
            }
#endif
            depthwise_pixel(k, &at, to);
        }
    }
#endif
}
