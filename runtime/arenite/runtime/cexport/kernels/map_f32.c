#include "kernel.h"
#include "rows.h"

/* A function of each float, with two parameters; rows [first, end) of `width` floats. */
KERNEL map_f32(float (*function)(float, float, float), float alpha, float beta, int32_t width,
               in_rows in, out_rows out, int32_t first, int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        const float *from = (const float *)(const void *)in_row(in, y);
        float *to = (float *)(void *)out_row(out, y);
        for (int32_t i = 0; i < width; ++i)
            to[i] = function(from[i], alpha, beta);
    }
}
