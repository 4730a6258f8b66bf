#include "kernel.h"
#include "rows.h"
#include "requantise.h"
#include "windows.h"
#include "conv_layer.h"
#include "dot4.h"

/* Convolution, rows [first, end) of the result; pixel by pixel, four outputs at a time. */
KERNEL conv_s8(const conv_layer *k, in_rows in, out_rows out, int32_t first, int32_t end)
{
    const int32_t depth = k->depth / k->groups, outputs = k->out_depth / k->groups;
    const int32_t blocks = (outputs + 3) / 4, block_size = 4 * k->kernel_y * k->kernel_x * depth;
    const int is_run = k->groups == 1 && k->dilation_x == 1;
    for (int32_t y = first; y < end; ++y) {
        const int32_t top = y * k->stride_y - k->top;
        const taps rows = taps_inside(top, k->dilation_y, k->kernel_y, k->height);
        int8_t *to = (int8_t *)out_row(out, y);
        for (int32_t x = 0; x < k->out_width; ++x) {
            const int32_t left = x * k->stride_x - k->left;
            const taps columns = taps_inside(left, k->dilation_x, k->kernel_x, k->width);
            const int32_t width = columns.end - columns.first;
            /* Taps side by side are read in one run where the image has them so. */
            const int32_t runs = is_run ? 1 : width, run = is_run ? width * depth : depth;
            const int32_t start = (left + columns.first * k->dilation_x) * k->depth;
            for (int32_t block = 0; block < blocks * k->groups; ++block) {
                const int32_t group = block / blocks, c = 4 * (block - group * blocks);
                const int8_t *filter = k->filter + block * block_size;
                int32_t sums[4 + FILTER_ZERO_POINTS];
                begin4(sums, k, block);
                for (int32_t row = rows.first; row < rows.end; ++row) {
                    const int8_t *from = (const int8_t *)in_row(in, top + row * k->dilation_y);
                    const int8_t *weights =
                        filter + 4 * (row * k->kernel_x + columns.first) * depth;
                    from += start + group * depth;
                    for (int32_t i = 0; i < runs; ++i) {
                        dot4(sums, from, weights, run, k->in_offset);
                        from += k->dilation_x * k->depth;
                        weights += 4 * depth;
                    }
                }
                finish4(to + group * outputs + c, sums, k, block,
                        outputs - c < 4 ? outputs - c : 4);
            }
            to += k->out_depth;
        }
    }
}
