#include "kernel.h"
#include "rows.h"
#include "requantise.h"

/* One for each of
   THE_KERNEL         | RESULT  | LOWEST | HIGHEST
   requantise_s16_s8  | int8_t  | -128   | 127
   requantise_s16_s16 | int16_t | -32768 | 32767 */

/* Integers of one scale to those of another; rows [first, end) of `width`. */
KERNEL THE_KERNEL(int32_t from_zero, int32_t factor, int32_t shift, int32_t to_zero, int32_t width,
                  in_rows in, out_rows out, int32_t first, int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        const int16_t *from = (const int16_t *)(const void *)in_row(in, y);
        RESULT *to = (RESULT *)(void *)out_row(out, y);
        for (int32_t i = 0; i < width; ++i) {
            const int32_t value = requantised(from[i] - from_zero, factor, shift);
            to[i] = (RESULT)clamped(value + to_zero, LOWEST, HIGHEST);
        }
    }
}
