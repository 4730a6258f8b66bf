#include "kernel.h"
#include "rows.h"
#include "requantise.h"

/* Floats to bytes, halves away from zero; rows [first, end) of `width`. */
KERNEL quantise_s8(float scale, int32_t zero, int32_t width, in_rows in, out_rows out,
                   int32_t first, int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        const float *from = (const float *)(const void *)in_row(in, y);
        int8_t *to = (int8_t *)out_row(out, y);
        for (int32_t i = 0; i < width; ++i) {
            const float steps = roundf(from[i] / scale);
            /* Far from what a byte holds the conversion to an integer would not be defined. */
            const int32_t value = steps < -512.0f ? -512 : steps > 512.0f ? 512 : (int32_t)steps;
            to[i] = (int8_t)clamped(value + zero, -128, 127);
        }
    }
}
