#include "kernel.h"
#include "rows.h"

/* Integers of 16 bits to floats; rows [first, end) of `width`. */
KERNEL dequantise_s16(float scale, int32_t zero, int32_t width, in_rows in, out_rows out,
                      int32_t first, int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        const int16_t *from = (const int16_t *)(const void *)in_row(in, y);
        float *to = (float *)(void *)out_row(out, y);
        for (int32_t i = 0; i < width; ++i)
            to[i] = scale * (float)(from[i] - zero);
    }
}
