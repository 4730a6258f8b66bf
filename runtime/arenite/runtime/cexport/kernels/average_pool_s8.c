#include "kernel.h"
#include "rows.h"
#include "requantise.h"
#include "windows.h"
#include "pool_layer.h"

/* Averages, rounded halves away from zero; rows [first, end) of the result. */
KERNEL average_pool_s8(const pool_layer *k, in_rows in, out_rows out, int32_t first, int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        const int32_t top = y * k->stride_y - k->top;
        const taps rows = taps_inside(top, 1, k->kernel_y, k->height);
        int8_t *to = (int8_t *)out_row(out, y);
        for (int32_t x = 0; x < k->out_width; ++x) {
            const int32_t left = x * k->stride_x - k->left;
            const taps columns = taps_inside(left, 1, k->kernel_x, k->width);
            const int32_t count = (rows.end - rows.first) * (columns.end - columns.first);
            for (int32_t c = 0; c < k->depth; ++c) {
                int32_t sum = k->lift * count;
                for (int32_t row = rows.first; row < rows.end; ++row) {
                    const int8_t *from = (const int8_t *)in_row(in, top + row);
                    from += (left + columns.first) * k->depth + c;
                    for (int32_t i = columns.first; i < columns.end; ++i, from += k->depth)
                        sum += *from;
                }
                sum = (sum > 0 ? sum + count / 2 : sum - count / 2) / count - k->lift;
                *to++ = (int8_t)clamped(sum, k->low, k->high);
            }
        }
    }
}
