#include "kernel.h"
#include "rows.h"

/* Sums of floats times `scale` over `rows` rows, which come a few at a time: `sums` has one for
   each channel, added up in the order of `sum_f32`. Rows [first, end) of the operand; the result is
   made with the last one. */
KERNEL sum_by_rows_f32(int32_t rows, int32_t columns, int32_t depth, float scale,
                       uint8_t *sums_place, in_rows in, out_rows out, int32_t first, int32_t end)
{
    float *const sums = (float *)(void *)sums_place;
    float *const to = (float *)(void *)out_row(out, 0);
    for (int32_t c = 0; c < depth; ++c) {
        float sum = first > 0 ? sums[c] : 0.0f;
        for (int32_t y = first; y < end; ++y) {
            const float *from = (const float *)(const void *)in_row(in, y) + c;
            for (int32_t i = 0; i < columns; ++i, from += depth)
                sum += *from;
        }
        sums[c] = sum;
        if (end == rows)
            to[c] = sum * scale;
    }
}
