#include "kernel.h"
#include "rows.h"

/* Softmax of beta * x in rows of `width` floats; rows [first, end), each read before it is
   written. */
KERNEL softmax_f32(int32_t width, float beta, in_rows in, out_rows out, int32_t first, int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        const float *from = (const float *)(const void *)in_row(in, y);
        float *to = (float *)(void *)out_row(out, y);
        float most = from[0], sum = 0.0f;
        for (int32_t i = 1; i < width; ++i)
            most = from[i] > most ? from[i] : most;
        for (int32_t i = 0; i < width; ++i) {
            to[i] = expf((from[i] - most) * beta);
            sum += to[i];
        }
        for (int32_t i = 0; i < width; ++i)
            to[i] /= sum;
    }
}
