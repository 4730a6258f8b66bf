#include "kernel.h"
#include "rows.h"
#include "windows.h"
#include "clamp_f32.h"
#include "conv_layer_f32.h"

/* Depthwise convolution, rows [first, end) of the result. The filter is rows, columns, outputs;
   `out_depth` is a multiple of `depth`. */
KERNEL depthwise_f32(const conv_layer_f32 *k, in_rows in, out_rows out, int32_t first, int32_t end)
{
    const int32_t depth = k->depth, outputs = k->out_depth, multiplier = outputs / depth;
    for (int32_t y = first; y < end; ++y) {
        const int32_t top = y * k->stride_y - k->top;
        const taps rows = taps_inside(top, k->dilation_y, k->kernel_y, k->height);
        float *to = (float *)(void *)out_row(out, y);
        for (int32_t x = 0; x < k->out_width; ++x) {
            const int32_t left = x * k->stride_x - k->left;
            const taps columns = taps_inside(left, k->dilation_x, k->kernel_x, k->width);
            const int32_t start = (left + columns.first * k->dilation_x) * depth;
            for (int32_t o = 0; o < outputs; ++o) {
                float sum = k->bias[o];
                for (int32_t row = rows.first; row < rows.end; ++row) {
                    const float *from =
                        (const float *)(const void *)in_row(in, top + row * k->dilation_y);
                    const float *w = k->filter + (row * k->kernel_x + columns.first) * outputs + o;
                    from += start + o / multiplier;
                    for (int32_t i = columns.first; i < columns.end; ++i) {
                        sum += *from * *w;
                        from += k->dilation_x * depth;
                        w += outputs;
                    }
                }
                *to++ = clamped_f32(sum, k->low, k->high);
            }
        }
    }
}
