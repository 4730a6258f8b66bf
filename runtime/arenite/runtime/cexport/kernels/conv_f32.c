#include "kernel.h"
#include "rows.h"
#include "windows.h"
#include "clamp_f32.h"
#include "conv_layer_f32.h"
#include "dot4_f32.h"

/* Convolution, rows [first, end) of the result; pixel by pixel, four outputs at a time. */
KERNEL conv_f32(const conv_layer_f32 *k, in_rows in, out_rows out, int32_t first, int32_t end)
{
    const int32_t depth = k->depth / k->groups, outputs = k->out_depth / k->groups;
    const int32_t blocks = (outputs + 3) / 4, block_size = 4 * k->kernel_y * k->kernel_x * depth;
    const int is_run = k->groups == 1 && k->dilation_x == 1;
    for (int32_t y = first; y < end; ++y) {
        const int32_t top = y * k->stride_y - k->top;
        const taps rows = taps_inside(top, k->dilation_y, k->kernel_y, k->height);
        float *to = (float *)(void *)out_row(out, y);
        for (int32_t x = 0; x < k->out_width; ++x, to += k->out_depth) {
            const int32_t left = x * k->stride_x - k->left;
            const taps columns = taps_inside(left, k->dilation_x, k->kernel_x, k->width);
            const int32_t width = columns.end - columns.first;
            /* Taps side by side are read in one run where the image has them so. */
            const int32_t runs = is_run ? 1 : width, run = is_run ? width * depth : depth;
            const int32_t start = (left + columns.first * k->dilation_x) * k->depth;
            for (int32_t block = 0; block < blocks * k->groups; ++block) {
                const int32_t group = block / blocks, c = 4 * (block - group * blocks);
                const float *filter = k->filter + block * block_size;
                float *result = to + group * outputs + c;
                float sums[4];
                for (int32_t i = 0; i < 4; ++i)
                    sums[i] = k->bias[4 * block + i];
                for (int32_t row = rows.first; row < rows.end; ++row) {
                    const float *from =
                        (const float *)(const void *)in_row(in, top + row * k->dilation_y);
                    const float *weights = filter + 4 * (row * k->kernel_x + columns.first) * depth;
                    from += start + group * depth;
                    for (int32_t i = 0; i < runs; ++i) {
                        dot4_f32(sums, from, weights, run);
                        from += k->dilation_x * k->depth;
                        weights += 4 * depth;
                    }
                }
                for (int32_t i = 0; i < 4 && i < outputs - c; ++i)
                    result[i] = clamped_f32(sums[i], k->low, k->high);
            }
        }
    }
}
