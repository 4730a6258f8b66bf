#include "kernel.h"
#include "rows.h"
#include "requantise.h"
#include "windows.h"
#include "conv_layer.h"

#if FILTER_ZERO_POINTS
#define WEIGHT(w) ((w) + k->filter_offset)
#else
#define WEIGHT(w) (w)
#endif

/* Take from the sums what the bias has of the taps of a window that lie outside the image. */
static void leave_outside(const conv_layer *k, int32_t *sums, int32_t output, int32_t lanes,
                          taps rows, taps columns)
{
    const int8_t *w = k->filter + output;
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
                const int8_t *w =
                    k->filter + (rows.first * k->kernel_x + columns.first) * outputs + o;
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
                    const int32_t value = requantised(sums[i], k->factors[at], k->shifts[at]);
                    *to++ = (int8_t)clamped(value + k->out_zero, k->low, k->high);
                }
            }
        }
    }
}
