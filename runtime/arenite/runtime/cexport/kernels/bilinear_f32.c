#include "kernel.h"
#include "rows.h"

/* Rows and columns of an image for each of the result, and the weights of the second of two. */
typedef struct {
    int32_t depth, out_width;
    const int16_t *row_low;
    const int16_t *row_high;
    const int16_t *column_low;
    const int16_t *column_high;
    const float *row_weight;
    const float *column_weight;
} resize_layer_f32;

/* Blends of four pixels of floats; rows [first, end) of the result. */
KERNEL bilinear_f32(const resize_layer_f32 *k, in_rows in, out_rows out, int32_t first, int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        const float *above = (const float *)(const void *)in_row(in, k->row_low[y]);
        const float *below = (const float *)(const void *)in_row(in, k->row_high[y]);
        const float down = k->row_weight[y];
        float *to = (float *)(void *)out_row(out, y);
        for (int32_t x = 0; x < k->out_width; ++x) {
            const int32_t left = k->column_low[x] * k->depth;
            const int32_t right = k->column_high[x] * k->depth;
            const float across = k->column_weight[x];
            for (int32_t c = 0; c < k->depth; ++c)
                *to++ = (above[left + c] * (1.0f - across) + above[right + c] * across) *
                            (1.0f - down) +
                        (below[left + c] * (1.0f - across) + below[right + c] * across) * down;
        }
    }
}
