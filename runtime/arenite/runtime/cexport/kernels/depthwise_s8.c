#include "rows.h"
#include "requantise.h"
#include "windows.h"
#include "conv_layer.h"

/* Depthwise convolution, rows [first, end) of the result. The filter is rows, columns, outputs;
   `out_depth` is a multiple of `depth`. Pixel by pixel; four channels at a time where each has
   one output. */
static void depthwise_s8(const conv_layer *k, in_rows in, out_rows out, int32_t first, int32_t end)
{
    const int32_t depth = k->depth, outputs = k->out_depth, multiplier = outputs / depth;
    for (int32_t y = first; y < end; ++y) {
        const int32_t top = y * k->stride_y - k->top;
        const taps rows = taps_inside(top, k->dilation_y, k->kernel_y, k->height);
        int8_t *to = (int8_t *)out_row(out, y);
        for (int32_t x = 0; x < k->out_width; ++x) {
            const int32_t left = x * k->stride_x - k->left;
            const taps columns = taps_inside(left, k->dilation_x, k->kernel_x, k->width);
            const int32_t start = (left + columns.first * k->dilation_x) * depth;
            const int32_t step = k->dilation_x * depth;
            int32_t lanes = 0;
            for (int32_t o = 0; o < outputs; o += lanes) {
                int32_t sums[4];
                int32_t offset = k->in_offset;
                lanes = multiplier == 1 && outputs - o >= 4 ? 4 : 1;
                for (int32_t i = 0; i < lanes; ++i) sums[i] = k->bias[o + i];
                for (int32_t row = rows.first; row < rows.end; ++row) {
                    const int8_t *from = (const int8_t *)in_row(in, top + row * k->dilation_y);
                    const int8_t *w = k->filter + (row * k->kernel_x + columns.first) * outputs + o;
                    from += start + o / multiplier;
                    if (lanes == 4) {
                        int32_t a = sums[0], b = sums[1], c = sums[2], d = sums[3];
                        for (int32_t i = columns.first; i < columns.end; ++i) {
#if FILTER_ZERO_POINTS
                            a += (from[0] + offset) * (w[0] + k->filter_offset);
                            b += (from[1] + offset) * (w[1] + k->filter_offset);
                            c += (from[2] + offset) * (w[2] + k->filter_offset);
                            d += (from[3] + offset) * (w[3] + k->filter_offset);
#else
                            a += (from[0] + offset) * w[0];
                            b += (from[1] + offset) * w[1];
                            c += (from[2] + offset) * w[2];
                            d += (from[3] + offset) * w[3];
#endif
                            from += step;
                            w += outputs;
                        }
                        sums[0] = a;
                        sums[1] = b;
                        sums[2] = c;
                        sums[3] = d;
                    } else {
                        for (int32_t i = columns.first; i < columns.end; ++i) {
#if FILTER_ZERO_POINTS
                            sums[0] += (*from + offset) * (*w + k->filter_offset);
#else
                            sums[0] += (*from + offset) * *w;
#endif
                            from += step;
                            w += outputs;
                        }
                    }
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
