#include "kernel.h"
#include "rows.h"
#include "clamp_f32.h"
#include "conv_layer_f32.h"
#include "dot4_f32.h"

/* Convolution with a window of one pixel, or a product with a matrix; rows [first, end). */
KERNEL pointwise_f32(const conv_layer_f32 *k, in_rows in, out_rows out, int32_t first, int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        const float *from = (const float *)(const void *)in_row(in, y * k->stride_y);
        float *to = (float *)(void *)out_row(out, y);
        for (int32_t x = 0; x < k->out_width; ++x, from += k->stride_x * k->depth) {
            const float *filter = k->filter, *bias = k->bias;
            for (int32_t left = k->out_depth; left > 0; left -= 4, bias += 4) {
                float sums[4];
                for (int32_t i = 0; i < 4; ++i)
                    sums[i] = bias[i];
                dot4_f32(sums, from, filter, k->depth);
                filter += 4 * k->depth;
                for (int32_t i = 0; i < 4 && i < left; ++i)
                    *to++ = clamped_f32(sums[i], k->low, k->high);
            }
        }
    }
}
