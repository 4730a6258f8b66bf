#include "kernel.h"
#include "rows.h"

/* Bytes to floats; rows [first, end) of `width`. */
KERNEL dequantise_s8(float scale, int32_t zero, int32_t width, in_rows in, out_rows out,
                     int32_t first, int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        const int8_t *from = (const int8_t *)in_row(in, y);
        float *to = (float *)(void *)out_row(out, y);
        for (int32_t i = 0; i < width; ++i)
            to[i] = scale * (float)(from[i] - zero);
    }
}
