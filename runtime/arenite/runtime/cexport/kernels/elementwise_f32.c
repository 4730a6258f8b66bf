#include "common.h"

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

/* Channels times factors, plus terms. */
typedef struct {
    int32_t width, depth;
    float low, high;
    const float *factors;
    const float *terms;
} multiply_add_layer_f32;

/* Rows [first, end) of whole pixels. */
KERNEL multiply_add_f32(const multiply_add_layer_f32 *k, in_rows in, out_rows out, int32_t first,
                        int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        const float *from = (const float *)(const void *)in_row(in, y);
        float *to = (float *)(void *)out_row(out, y);
        for (int32_t i = 0, c = 0; i < k->width; ++i) {
            to[i] = clamped_f32(from[i] * k->factors[c] + k->terms[c], k->low, k->high);
            c = c + 1 < k->depth ? c + 1 : 0;
        }
    }
}
