#include "kernel.h"
#include "rows.h"
#include "requantise.h"
#include "conv_layer.h"
#include "dot4.h"

/* Convolution with a window of one pixel, or a product with a matrix; rows [first, end). What
   offsets add to the sums is in the bias. */
KERNEL pointwise_s8(const conv_layer *k, in_rows in, out_rows out, int32_t first, int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        const int8_t *from = (const int8_t *)in_row(in, y * k->stride_y);
        int8_t *to = (int8_t *)out_row(out, y);
        for (int32_t x = 0; x < k->out_width; ++x) {
            const int8_t *filter = k->filter;
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
