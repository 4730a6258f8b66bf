#include "kernel.h"
#include "rows.h"
#include "requantise.h"
#include "reduce_layer.h"

/* Sums or means of bytes; results [first, end), each of `rows` rows. */
KERNEL sum_s8(const reduce_layer *k, in_rows in, out_rows out, int32_t first, int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        int8_t *to = (int8_t *)out_row(out, y);
        for (int32_t c = 0; c < k->depth; ++c) {
            int32_t sum = k->offset;
            for (int32_t row = 0; row < k->rows; ++row) {
                const int8_t *from = (const int8_t *)in_row(in, y * k->rows + row) + c;
                for (int32_t i = 0; i < k->columns; ++i, from += k->depth)
                    sum += *from;
            }
            to[c] = (int8_t)clamped(requantised(sum, k->factor, k->shift) + k->zero, -128, 127);
        }
    }
}
