#include "kernel.h"
#include "rows.h"
#include "requantise.h"

/* Floats to 16 bits, halves away from zero; rows [first, end) of `width`. The result may lie on
   the first bytes of the operand. */
KERNEL quantise_s16(float scale, int32_t zero, int32_t width, in_rows in, out_rows out,
                    int32_t first, int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        const float *from = (const float *)(const void *)in_row(in, y);
        int16_t *to = (int16_t *)(void *)out_row(out, y);
        for (int32_t i = 0; i < width; ++i) {
            const float steps = roundf(from[i] / scale);
            /* Far from what they hold the conversion to an integer would not be defined. */
            const int32_t value = steps < -65536.0f  ? -65536
                                  : steps > 65536.0f ? 65536
                                                     : (int32_t)steps;
            to[i] = (int16_t)clamped(value + zero, -32768, 32767);
        }
    }
}
