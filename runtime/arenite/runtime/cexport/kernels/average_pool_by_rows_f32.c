#include "kernel.h"
#include "rows.h"
#include "windows.h"
#include "clamp_f32.h"
#include "pool_layer_f32.h"

/* Averages over all rows, which come a few at a time: `sums` has one for each result, added up in
   the order of `average_pool_f32`. Rows [first, end) of the operand; the result is made with the
   last one. */
KERNEL average_pool_by_rows_f32(const pool_layer_f32 *k, uint8_t *sums_place, in_rows in,
                                out_rows out, int32_t first, int32_t end)
{
    float *const sums = (float *)(void *)sums_place;
    float *const to = (float *)(void *)out_row(out, 0);
    for (int32_t x = 0; x < k->out_width; ++x) {
        const int32_t left = x * k->stride_x - k->left;
        const taps columns = taps_inside(left, 1, k->kernel_x, k->width);
        const int32_t count = k->height * (columns.end - columns.first);
        for (int32_t c = 0; c < k->depth; ++c) {
            const int32_t place = x * k->depth + c;
            float sum = first > 0 ? sums[place] : 0.0f;
            for (int32_t y = first; y < end; ++y) {
                const float *from = (const float *)(const void *)in_row(in, y);
                from += (left + columns.first) * k->depth + c;
                for (int32_t i = columns.first; i < columns.end; ++i, from += k->depth)
                    sum += *from;
            }
            sums[place] = sum;
            if (end == k->height)
                to[place] = clamped_f32(sum / (float)count, k->low, k->high);
        }
    }
}
