#include "kernel.h"
#include "rows.h"
#include "requantise.h"
#include "reduce_layer.h"

/* Sums or means of bytes over all rows, which come a few at a time: `sums` has one for each
   channel. Rows [first, end) of the operand; the result is made with the last one. */
KERNEL sum_by_rows_s8(const reduce_layer *k, uint8_t *sums_place, in_rows in, out_rows out,
                      int32_t first, int32_t end)
{
    int32_t *const sums = (int32_t *)(void *)sums_place;
    int8_t *const to = (int8_t *)out_row(out, 0);
    for (int32_t c = 0; c < k->depth; ++c) {
        int32_t sum = first > 0 ? sums[c] : k->offset;
        for (int32_t y = first; y < end; ++y) {
            const int8_t *from = (const int8_t *)in_row(in, y) + c;
            for (int32_t i = 0; i < k->columns; ++i, from += k->depth)
                sum += *from;
        }
        sums[c] = sum;
        if (end == k->rows)
            to[c] = (int8_t)clamped(requantised(sum, k->factor, k->shift) + k->zero, -128, 127);
    }
}
