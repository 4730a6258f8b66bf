#include "common.h"
#include "dsp.h"
#include "conv_s8.h"

/* Add the products of `count` inputs with the weights of four outputs to their sums. */
static inline void dot4(int32_t *sums, const int8_t *input, const int8_t *filter, int32_t count,
                        int32_t offset)
{
    int32_t a = sums[0], b = sums[1], c = sums[2], d = sums[3];
#if FILTER_ZERO_POINTS
    int32_t total = sums[4];
#endif
    for (const int8_t *end = input + count; input < end; ++input, filter += 4) {
        const int32_t x = *input + offset;
        a += x * filter[0];
        b += x * filter[1];
        c += x * filter[2];
        d += x * filter[3];
#if FILTER_ZERO_POINTS
        total += x;
#endif
    }
    sums[0] = a;
    sums[1] = b;
    sums[2] = c;
    sums[3] = d;
#if FILTER_ZERO_POINTS
    sums[4] = total;
#endif
}

/* The sums that a block of four outputs begins with. */
static inline void begin4(int32_t *sums, const conv_layer *k, int32_t block)
{
    for (int32_t i = 0; i < 4; ++i)
        sums[i] = k->bias[4 * block + i];
#if FILTER_ZERO_POINTS
    sums[4] = 0;
#endif
}

/* Write the first `count` results of a block; by now every input of it has been read. */
static inline void finish4(int8_t *out, const int32_t *sums, const conv_layer *k, int32_t block,
                           int32_t count)
{
    int32_t at = 4 * block * k->factor_step;
    for (int32_t i = 0; i < count; ++i, at += k->factor_step) {
#if FILTER_ZERO_POINTS
        const int32_t sum = sums[i] + sums[4] * k->filter_offset;
#else
        const int32_t sum = sums[i];
#endif
        const int32_t value = in_steps(k, sum, at) + k->out_zero;
        out[i] = (int8_t)clamped(value, k->low, k->high);
    }
}

/* Convolution, rows [first, end) of the result; pixel by pixel, four outputs at a time. */
KERNEL conv_s8(const conv_layer *k, in_rows in, out_rows out, int32_t first, int32_t end)
{
    const int32_t depth = k->depth / k->groups, outputs = k->out_depth / k->groups;
    for (int32_t y = first; y < end; ++y) {
        const int32_t top = y * k->stride_y - k->top;
        const taps rows = taps_inside(top, k->dilation_y, k->kernel_y, k->height);
        int8_t *to = (int8_t *)out_row(out, y);
        for (int32_t x = 0; x < k->out_width; ++x) {
            const int32_t left = x * k->stride_x - k->left;
            const taps columns = taps_inside(left, k->dilation_x, k->kernel_x, k->width);
            /* Taps side by side are read in one run where the image has them so. */
            const int is_run = k->groups == 1 && k->dilation_x == 1;
            const int32_t runs = is_run ? 1 : columns.end - columns.first;
            const int32_t run = is_run ? (columns.end - columns.first) * depth : depth;
            int32_t start = (left + columns.first * k->dilation_x) * k->depth;
            int32_t block = 0;
            for (int32_t group = 0; group < k->groups; ++group, start += depth) {
                for (int32_t rest = outputs; rest > 0; rest -= 4, ++block) {
                    const int8_t *filter =
                        (const int8_t *)k->filter +
                        4 * (block * k->kernel_y * k->kernel_x + columns.first) * depth;
                    int32_t sums[4 + FILTER_ZERO_POINTS];
                    begin4(sums, k, block);
                    for (int32_t row = rows.first; row < rows.end; ++row) {
                        const int8_t *from = (const int8_t *)in_row(in, top + row * k->dilation_y);
                        const int8_t *weights = filter + 4 * row * k->kernel_x * depth;
                        from += start;
                        for (int32_t i = 0; i < runs; ++i) {
                            dot4(sums, from, weights, run, k->in_offset);
                            from += k->dilation_x * k->depth;
                            weights += 4 * depth;
                        }
                    }
                    finish4(to, sums, k, block, rest < 4 ? rest : 4);
                    to += rest < 4 ? rest : 4;
                }
            }
        }
    }
}

/* Convolution with a window of one pixel, or a product with a matrix; rows [first, end). What
   offsets add to the sums is in the bias. */
KERNEL pointwise_s8(const conv_layer *k, in_rows in, out_rows out, int32_t first, int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        const int8_t *from = (const int8_t *)in_row(in, y * k->stride_y);
        int8_t *to = (int8_t *)out_row(out, y);
        for (int32_t x = 0; x < k->out_width; ++x) {
            const int8_t *filter = (const int8_t *)k->filter;
            int32_t block = 0;
            for (int32_t left = k->out_depth; left > 0; left -= 4, ++block) {
                int32_t sums[4 + FILTER_ZERO_POINTS];
                begin4(sums, k, block);
                dot4(sums, from, filter, k->depth, 0);
                filter += 4 * k->depth;
                finish4(to, sums, k, block, left < 4 ? left : 4);
                to += left < 4 ? left : 4;
            }
            from += k->stride_x * k->depth;
        }
    }
}

static inline void add_fours(int32_t *sums, const int8_t *x, const conv_layer *k, int32_t output,
                             int32_t count)
{
    for (int32_t i = 0; i < count; i += 4) {
        int32_t four[4 + FILTER_ZERO_POINTS];
        for (int32_t j = 0; j < 4 + FILTER_ZERO_POINTS; ++j)
            four[j] = 0;
        dot4(four, x, (const int8_t *)k->filter + (output + i) * k->depth, k->depth, 0);
        for (int32_t j = i; j < i + 4 && j < count; ++j)
            sums[j] += four[j - i];
    }
}

/* The same with weights that have no zero point, by way of sums of 32 bits. */
KERNEL pointwise_sums_s8(const conv_layer *k, const void *added, in_rows in, out_rows out,
                         int32_t first, int32_t end)
{
    add_to_sums(add_fours, k, added, in, out, first, end);
}

#if FILTER_ZERO_POINTS
#define WEIGHT(w) ((w) + k->filter_offset)
#else
#define WEIGHT(w) (w)
#endif

/* Take from the sums what the bias has of the taps of a window that lie outside the image. */
static void leave_outside(const conv_layer *k, int32_t *sums, int32_t output, int32_t lanes,
                          taps rows, taps columns)
{
    const int8_t *w = (const int8_t *)k->filter + output;
    for (int32_t row = 0; row < k->kernel_y; ++row) {
        const int is_inside = row >= rows.first && row < rows.end;
        for (int32_t i = 0; i < k->kernel_x; ++i, w += k->out_depth) {
            if (is_inside && i >= columns.first && i < columns.end)
                continue;
            for (int32_t lane = 0; lane < lanes; ++lane)
                sums[lane] -= WEIGHT(w[lane]) * k->in_offset;
        }
    }
}

/* Depthwise convolution, rows [first, end) of the result. The filter is rows, columns, outputs;
   `out_depth` is a multiple of `depth`. What offsets add to the sums of whole windows is in the
   bias. Pixel by pixel; four channels at a time where each has one output. */
KERNEL depthwise_s8(const conv_layer *k, in_rows in, out_rows out, int32_t first, int32_t end)
{
    const int32_t depth = k->depth, outputs = k->out_depth, multiplier = outputs / depth;
    const int32_t step = k->dilation_x * depth;
    for (int32_t y = first; y < end; ++y) {
        const int32_t top = y * k->stride_y - k->top;
        const taps rows = taps_inside(top, k->dilation_y, k->kernel_y, k->height);
        int8_t *to = (int8_t *)out_row(out, y);
        for (int32_t x = 0; x < k->out_width; ++x) {
            const int32_t left = x * k->stride_x - k->left;
            const taps columns = taps_inside(left, k->dilation_x, k->kernel_x, k->width);
            const int32_t start = (left + columns.first * k->dilation_x) * depth;
            const int32_t count = columns.end - columns.first;
            const int is_whole = count * (rows.end - rows.first) == k->kernel_x * k->kernel_y;
            int32_t lanes = 0;
            for (int32_t o = 0; o < outputs; o += lanes) {
                int32_t sums[4];
                const int8_t *w = (const int8_t *)k->filter +
                                  (rows.first * k->kernel_x + columns.first) * outputs + o;
                lanes = multiplier == 1 && outputs - o >= 4 ? 4 : 1;
                for (int32_t i = 0; i < lanes; ++i)
                    sums[i] = k->bias[o + i];
                if (!is_whole)
                    leave_outside(k, sums, o, lanes, rows, columns);
                for (int32_t row = rows.first; row < rows.end; ++row) {
                    const int8_t *from = (const int8_t *)in_row(in, top + row * k->dilation_y);
                    const int8_t *const last = w + count * outputs;
                    from += start + (multiplier == 1 ? o : o / multiplier);
                    if (lanes == 4) {
                        int32_t a = sums[0], b = sums[1], c = sums[2], d = sums[3];
                        for (; w < last; w += outputs, from += step) {
                            a += from[0] * WEIGHT(w[0]);
                            b += from[1] * WEIGHT(w[1]);
                            c += from[2] * WEIGHT(w[2]);
                            d += from[3] * WEIGHT(w[3]);
                        }
                        sums[0] = a;
                        sums[1] = b;
                        sums[2] = c;
                        sums[3] = d;
                    } else {
                        for (; w < last; w += outputs, from += step)
                            sums[0] += *from * WEIGHT(*w);
                    }
                    w += (k->kernel_x - count) * outputs;
                }
                for (int32_t i = 0; i < lanes; ++i) {
                    const int32_t at = (o + i) * k->factor_step;
                    const int32_t value = in_steps(k, sums[i], at);
                    *to++ = (int8_t)clamped(value + k->out_zero, k->low, k->high);
                }
            }
        }
    }
}

/* Transposed convolution, rows [first, end) of the result. The filter is outputs, rows, columns,
   inputs of a group. */
KERNEL transposed_s8(const conv_layer *k, in_rows in, out_rows out, int32_t first, int32_t end)
{
    const int32_t depth = k->depth / k->groups, outputs = k->out_depth / k->groups;
    for (int32_t y = first; y < end; ++y) {
        int8_t *to = (int8_t *)out_row(out, y);
        for (int32_t x = 0; x < k->out_width; ++x)
            for (int32_t o = 0; o < k->out_depth; ++o) {
                const int8_t *weights =
                    (const int8_t *)k->filter + o * k->kernel_y * k->kernel_x * depth;
                int32_t sum = k->bias[o];
                for (int32_t row = 0; row < k->kernel_y; ++row) {
                    const int32_t v = y + k->top - row * k->dilation_y;
                    for (int32_t column = 0; column < k->kernel_x; ++column, weights += depth) {
                        const int32_t u = x + k->left - column * k->dilation_x;
                        if (!is_tap(v, k->stride_y, k->height) || !is_tap(u, k->stride_x, k->width))
                            continue;
                        const int8_t *from = (const int8_t *)in_row(in, v / k->stride_y);
                        from += u / k->stride_x * k->depth + o / outputs * depth;
                        for (int32_t i = 0; i < depth; ++i)
                            sum += (from[i] + k->in_offset) * (weights[i] + k->filter_offset);
                    }
                }
                const int32_t value = in_steps(k, sum, o * k->factor_step) + k->out_zero;
                *to++ = (int8_t)clamped(value, k->low, k->high);
            }
    }
}
