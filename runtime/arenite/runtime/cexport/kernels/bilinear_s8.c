#include "kernel.h"
#include "rows.h"
#include "resize_layer.h"

/* Blends of four pixels of bytes; rows [first, end) of the result. */
KERNEL bilinear_s8(const resize_layer *k, in_rows in, out_rows out, int32_t first, int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        const int8_t *above = (const int8_t *)in_row(in, k->row_low[y]);
        const int8_t *below = (const int8_t *)in_row(in, k->row_high[y]);
        const int32_t down = k->row_weight[y];
        int8_t *to = (int8_t *)out_row(out, y);
        for (int32_t x = 0; x < k->out_width; ++x) {
            const int32_t left = k->column_low[x] * k->depth;
            const int32_t right = k->column_high[x] * k->depth;
            const int32_t across = k->column_weight[x];
            for (int32_t c = 0; c < k->depth; ++c) {
                const int32_t sum =
                    (above[left + c] * (1024 - across) + above[right + c] * across) *
                        (1024 - down) +
                    (below[left + c] * (1024 - across) + below[right + c] * across) * down;
                *to++ = (int8_t)((sum + (sum > 0 ? 1 << 19 : -(1 << 19))) / (1 << 20));
            }
        }
    }
}
