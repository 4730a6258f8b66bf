#include "common.h"

/* An average of bytes, halves away from zero. */
static inline int32_t rounded_average(int32_t sum, int32_t count)
{
    return (sum > 0 ? sum + count / 2 : sum - count / 2) / count;
}

/* The sum of the bytes of each channel in groups of `count` pixels. */
KERNEL partial_sums_s8(int32_t groups, int32_t count, int32_t depth, const uint8_t *in,
                       uint8_t *out)
{
    const int8_t *from = (const int8_t *)in;
    int16_t *to = (int16_t *)(void *)out;
    for (int32_t group = 0; group < groups; ++group, from += count * depth)
        for (int32_t c = 0; c < depth; ++c) {
            int32_t sum = 0;
            for (int32_t i = 0; i < count; ++i)
                sum += from[i * depth + c];
            *to++ = (int16_t)sum;
        }
}

/* One for each column of
   MAX_POOL     | max_pool_s8     | max_pool_f32     | max_pool_even_s8     | max_pool_s16
   AVERAGE_POOL | average_pool_s8 | average_pool_f32 | average_pool_even_s8 | average_pool_s16
   BY_ROWS      | average_pool_by_rows_s8
                | average_pool_by_rows_f32
                | average_pool_by_rows_even_s8
                | average_pool_by_rows_s16
   POOL_LAYER   | pool_layer      | pool_layer_f32   | pool_even_layer      | pool_layer
   WINDOWS_OF   | integers        | floats           | bytes of two scales  | integers
   LIMITS       | int32_t lift, low, high
                | float low, high
                | int32_t in_zero, out_zero, low, high; float ratio
                | int32_t lift, low, high
   ELEMENT      | int8_t          | float            | int8_t               | int16_t
   SUM          | int32_t         | float            | int32_t              | int32_t
   LEAST        | -128            | -FLT_MAX         | -128                 | -32768
   LARGEST      | most
                | most
                | nearest_even((float)(most - k->in_zero) * k->ratio) + k->out_zero
                | most
   START        | k->lift * count | 0.0f             | -k->in_zero * count  | k->lift * count
   CLAMPED      | clamped         | clamped_f32      | clamped              | clamped
   AVERAGE      | rounded_average(sum, count) - k->lift
                | sum / (float)count
                | nearest_even((float)sum * k->ratio / (float)count) + k->out_zero
                | rounded_average(sum, count) - k->lift */

/* A pool of windows of WINDOWS_OF. A `lift` makes the sums of an average positive, or is 0. */
typedef struct {
    int32_t height, width, depth, out_width;
    int32_t kernel_y, kernel_x, stride_y, stride_x, top, left;
    LIMITS;
} POOL_LAYER;

/* The largest of each window; rows [first, end) of the result. */
KERNEL MAX_POOL(const POOL_LAYER *k, in_rows in, out_rows out, int32_t first, int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        const int32_t top = y * k->stride_y - k->top;
        const taps rows = taps_inside(top, 1, k->kernel_y, k->height);
        ELEMENT *to = (ELEMENT *)(void *)out_row(out, y);
        for (int32_t x = 0; x < k->out_width; ++x) {
            const int32_t left = x * k->stride_x - k->left;
            const taps columns = taps_inside(left, 1, k->kernel_x, k->width);
            for (int32_t c = 0; c < k->depth; ++c) {
                SUM most = LEAST;
                for (int32_t row = rows.first; row < rows.end; ++row) {
                    const ELEMENT *from = (const ELEMENT *)(const void *)in_row(in, top + row);
                    from += (left + columns.first) * k->depth + c;
                    for (int32_t i = columns.first; i < columns.end; ++i, from += k->depth)
                        most = *from > most ? *from : most;
                }
                *to++ = (ELEMENT)CLAMPED(LARGEST, k->low, k->high);
            }
        }
    }
}

/* The average of each window; rows [first, end) of the result. */
KERNEL AVERAGE_POOL(const POOL_LAYER *k, in_rows in, out_rows out, int32_t first, int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        const int32_t top = y * k->stride_y - k->top;
        const taps rows = taps_inside(top, 1, k->kernel_y, k->height);
        ELEMENT *to = (ELEMENT *)(void *)out_row(out, y);
        for (int32_t x = 0; x < k->out_width; ++x) {
            const int32_t left = x * k->stride_x - k->left;
            const taps columns = taps_inside(left, 1, k->kernel_x, k->width);
            const int32_t count = (rows.end - rows.first) * (columns.end - columns.first);
            for (int32_t c = 0; c < k->depth; ++c) {
                SUM sum = START;
                for (int32_t row = rows.first; row < rows.end; ++row) {
                    const ELEMENT *from = (const ELEMENT *)(const void *)in_row(in, top + row);
                    from += (left + columns.first) * k->depth + c;
                    for (int32_t i = columns.first; i < columns.end; ++i, from += k->depth)
                        sum += *from;
                }
                sum = AVERAGE;
                *to++ = (ELEMENT)CLAMPED(sum, k->low, k->high);
            }
        }
    }
}

/* Averages over all rows, which come a few at a time: `sums_place` holds a sum for each result,
   added up in the order of a whole average. Rows [first, end) of the operand; the result is made
   with the last one. */
KERNEL BY_ROWS(const POOL_LAYER *k, uint8_t *sums_place, in_rows in, out_rows out, int32_t first,
               int32_t end)
{
    SUM *const sums = (SUM *)(void *)sums_place;
    ELEMENT *const to = (ELEMENT *)(void *)out_row(out, 0);
    for (int32_t x = 0; x < k->out_width; ++x) {
        const int32_t left = x * k->stride_x - k->left;
        const taps columns = taps_inside(left, 1, k->kernel_x, k->width);
        const int32_t count = k->height * (columns.end - columns.first);
        for (int32_t c = 0; c < k->depth; ++c) {
            const int32_t place = x * k->depth + c;
            SUM sum = first > 0 ? sums[place] : START;
            for (int32_t y = first; y < end; ++y) {
                const ELEMENT *from = (const ELEMENT *)(const void *)in_row(in, y);
                from += (left + columns.first) * k->depth + c;
                for (int32_t i = columns.first; i < columns.end; ++i, from += k->depth)
                    sum += *from;
            }
            sums[place] = sum;
            if (end == k->height) {
                sum = AVERAGE;
                to[place] = (ELEMENT)CLAMPED(sum, k->low, k->high);
            }
        }
    }
}

/* One for each column of
   AVERAGE_SUMS  | average_sums_s8 | average_sums_even_s8
   AVERAGE_LAYER | average_layer   | average_even_layer
   LIMITS        | int32_t low, high
                 | int32_t in_zero, out_zero, low, high; float ratio
   START         | 0               | -k->in_zero * k->groups
   AVERAGE       | rounded_average(sum, k->count)
                 | nearest_even((float)sum * k->ratio / (float)k->count) + k->out_zero */

/* An average of `count` bytes, whose sums come in groups. */
typedef struct {
    int32_t groups, depth, count;
    LIMITS;
} AVERAGE_LAYER;

/* The average of each channel. */
KERNEL AVERAGE_SUMS(const AVERAGE_LAYER *k, const uint8_t *in, uint8_t *out)
{
    const int16_t *from = (const int16_t *)(const void *)in;
    int8_t *to = (int8_t *)out;
    for (int32_t c = 0; c < k->depth; ++c) {
        int32_t sum = START;
        for (int32_t group = 0; group < k->groups; ++group)
            sum += from[group * k->depth + c];
        to[c] = (int8_t)clamped(AVERAGE, k->low, k->high);
    }
}
