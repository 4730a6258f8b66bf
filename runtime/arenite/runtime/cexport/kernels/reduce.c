#include "common.h"

/* Sums of floats times `scale` over `divisor`, for results [first, end), each of `rows` rows of
   `columns` pixels. */
KERNEL sum_f32(int32_t rows, int32_t columns, int32_t depth, float scale, float divisor, in_rows in,
               out_rows out, int32_t first, int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        float *to = (float *)(void *)out_row(out, y);
        for (int32_t c = 0; c < depth; ++c) {
            float found = 0.0f;
            for (int32_t row = 0; row < rows; ++row) {
                const float *from = (const float *)(const void *)in_row(in, y * rows + row) + c;
                for (int32_t i = 0; i < columns; ++i, from += depth)
                    found += *from;
            }
            to[c] = found * scale / divisor;
        }
    }
}

/* The same over `rows` rows, which come a few at a time: `sums` has one for each channel, added up
   in the order of `sum_f32`. Rows [first, end) of the operand; the result is made with the last
   one. */
KERNEL sum_by_rows_f32(int32_t rows, int32_t columns, int32_t depth, float scale, float divisor,
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
            to[c] = sum * scale / divisor;
    }
}

/* One for each of
   THE_KERNEL     | ELEMENT | ORDER | START    | WHAT
   maximum_of_f32 | float   | >     | -FLT_MAX | largest
   minimum_of_f32 | float   | <     | FLT_MAX  | smallest
   maximum_of_s8  | int8_t  | >     | -128     | largest
   minimum_of_s8  | int8_t  | <     | 127      | smallest
   maximum_of_s16 | int16_t | >     | -32768   | largest
   minimum_of_s16 | int16_t | <     | 32767    | smallest */

/* The WHAT of elements, for results [first, end), each of `rows` rows of `columns` pixels. */
KERNEL THE_KERNEL(int32_t rows, int32_t columns, int32_t depth, in_rows in, out_rows out,
                  int32_t first, int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        ELEMENT *to = (ELEMENT *)(void *)out_row(out, y);
        for (int32_t c = 0; c < depth; ++c) {
            ELEMENT found = START;
            for (int32_t row = 0; row < rows; ++row) {
                const ELEMENT *from = (const ELEMENT *)(const void *)in_row(in, y * rows + row) + c;
                for (int32_t i = 0; i < columns; ++i, from += depth)
                    found = *from ORDER found ? *from : found;
            }
            to[c] = found;
        }
    }
}

/* One for each of
   THE_KERNEL | ELEMENT | PLACE
   arg_f32_32 | float   | int32_t
   arg_f32_64 | float   | int64_t
   arg_s8_32  | int8_t  | int32_t
   arg_s8_64  | int8_t  | int64_t */

/* Which of `count` elements, `depth` apart, is the largest, or with a sign of -1 the smallest:
   the first of them, or with `last` the last. Rows [first, end) of `depth` results. */
KERNEL THE_KERNEL(int32_t count, int32_t depth, int32_t sign, int32_t last, in_rows in,
                  out_rows out, int32_t first, int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        const ELEMENT *from = (const ELEMENT *)(const void *)in_row(in, y);
        PLACE *to = (PLACE *)(void *)out_row(out, y);
        for (int32_t c = 0; c < depth; ++c) {
            int32_t best = 0;
            for (int32_t i = 1; i < count; ++i) {
                const ELEMENT x = from[i * depth + c], z = from[best * depth + c];
                if ((sign > 0 ? x > z : x < z) || (last && !(x < z) && !(x > z)))
                    best = i;
            }
            to[c] = best;
        }
    }
}

/* One for each column of
   SUM     | sum_s8                | sum_even_s8          | sum_s16
   BY_ROWS | sum_by_rows_s8        | sum_by_rows_even_s8  | sum_by_rows_s16
   LAYER   | reduce_layer          | reduce_even_layer    | reduce_layer
   ELEMENT | int8_t                | int8_t               | int16_t
   LOWEST  | -128                  | -128                 | -32768
   HIGHEST | 127                   | 127                  | 32767
   SCALES  | int32_t factor, shift | float scale, count, out_scale
           | int32_t factor, shift
   STEPS   | requantised(sum, k->factor, k->shift)
           | nearest_even(k->scale * (float)sum / k->count / k->out_scale)
           | requantised(sum, k->factor, k->shift) */

/* Each result is made of `rows` rows of `columns` pixels; `depth` results a pixel. */
typedef struct {
    int32_t rows, columns, depth, offset, zero;
    SCALES;
} LAYER;

/* Sums or means of integers; results [first, end), each of `rows` rows. */
KERNEL SUM(const LAYER *k, in_rows in, out_rows out, int32_t first, int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        ELEMENT *to = (ELEMENT *)(void *)out_row(out, y);
        for (int32_t c = 0; c < k->depth; ++c) {
            int32_t sum = k->offset;
            for (int32_t row = 0; row < k->rows; ++row) {
                const ELEMENT *from =
                    (const ELEMENT *)(const void *)in_row(in, y * k->rows + row) + c;
                for (int32_t i = 0; i < k->columns; ++i, from += k->depth)
                    sum += *from;
            }
            to[c] = (ELEMENT)clamped(STEPS + k->zero, LOWEST, HIGHEST);
        }
    }
}

/* Sums or means of integers over all rows, which come a few at a time: `sums_place` holds a sum for
   each channel. Rows [first, end) of the operand; the result is made with the last one. */
KERNEL BY_ROWS(const LAYER *k, uint8_t *sums_place, in_rows in, out_rows out, int32_t first,
               int32_t end)
{
    int32_t *const sums = (int32_t *)(void *)sums_place;
    ELEMENT *const to = (ELEMENT *)(void *)out_row(out, 0);
    for (int32_t c = 0; c < k->depth; ++c) {
        int32_t sum = first > 0 ? sums[c] : k->offset;
        for (int32_t y = first; y < end; ++y) {
            const ELEMENT *from = (const ELEMENT *)(const void *)in_row(in, y) + c;
            for (int32_t i = 0; i < k->columns; ++i, from += k->depth)
                sum += *from;
        }
        sums[c] = sum;
        if (end == k->rows)
            to[c] = (ELEMENT)clamped(STEPS + k->zero, LOWEST, HIGHEST);
    }
}

/* One for each of
   THE_KERNEL     | AN_ELEMENT | A_SUM
   cumulative_f32 | float      | float
   cumulative_s32 | int32_t    | uint32_t
   cumulative_s64 | int64_t    | uint64_t */

/* Running sums along an axis of `length` elements, `depth` apart; from the end if `is_reverse`. */
KERNEL THE_KERNEL(int32_t before, int32_t length, int32_t depth, int32_t is_exclusive,
                  int32_t is_reverse, const uint8_t *in, uint8_t *out)
{
    const AN_ELEMENT *from = (const AN_ELEMENT *)(const void *)in;
    AN_ELEMENT *to = (AN_ELEMENT *)(void *)out;
    for (int32_t y = 0; y < before; ++y, from += length * depth, to += length * depth)
        for (int32_t c = 0; c < depth; ++c) {
            A_SUM total = 0;
            for (int32_t i = 0; i < length; ++i) {
                const int32_t at = (is_reverse ? length - 1 - i : i) * depth + c;
                const A_SUM previous = total;
                total += (A_SUM)from[at];
                to[at] = (AN_ELEMENT)(is_exclusive ? previous : total);
            }
        }
}
