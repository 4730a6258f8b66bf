#include "kernel.h"
#include "rows.h"
#include "requantise.h"
#include "windows.h"
#include "pool_layer.h"

/* Averages over all rows, which come a few at a time: `sums` has one for each result. Rows
   [first, end) of the operand; the result is made with the last one. */
KERNEL average_pool_by_rows_s8(const pool_layer *k, uint8_t *sums_place, in_rows in, out_rows out,
                               int32_t first, int32_t end)
{
    int32_t *const sums = (int32_t *)(void *)sums_place;
    for (int32_t x = 0; x < k->out_width; ++x) {
        const int32_t left = x * k->stride_x - k->left;
        const taps columns = taps_inside(left, 1, k->kernel_x, k->width);
        const int32_t count = k->height * (columns.end - columns.first);
        for (int32_t c = 0; c < k->depth; ++c) {
            const int32_t place = x * k->depth + c;
            int32_t sum = first > 0 ? sums[place] : k->lift * count;
            for (int32_t y = first; y < end; ++y) {
                const int8_t *from = (const int8_t *)in_row(in, y);
                from += (left + columns.first) * k->depth + c;
                for (int32_t i = columns.first; i < columns.end; ++i, from += k->depth)
                    sum += *from;
            }
            sums[place] = sum;
            if (end == k->height) {
                sum = (sum > 0 ? sum + count / 2 : sum - count / 2) / count - k->lift;
                ((int8_t *)out_row(out, 0))[place] = (int8_t)clamped(sum, k->low, k->high);
            }
        }
    }
}
