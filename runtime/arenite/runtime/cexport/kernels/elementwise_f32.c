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

/* Two tensors of floats, element by element; either may repeat along a row. */
typedef struct {
    int32_t width, step_a, step_b;
    float low, high;
} binary_layer_f32;

/* One for each of
   THE_KERNEL             | VALUE                | WHAT
   add_f32                | x + z                | A sum of two floats
   subtract_f32           | x - z                | A difference of two floats
   multiply_f32           | x * z                | A product of two floats
   divide_f32             | x / z                | A quotient of two floats
   maximum_f32            | x > z ? x : z        | The larger of two floats
   minimum_f32            | x < z ? x : z        | The smaller of two floats
   squared_difference_f32 | (x - z) * (x - z)    | The square of the difference of two floats
   prelu_f32              | x < 0.0f ? x * z : x | The first float, times the second where negative
 */

/* WHAT; rows [first, end). */
KERNEL THE_KERNEL(const binary_layer_f32 *k, in_rows one, in_rows other, out_rows out,
                  int32_t first, int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        const float *a = (const float *)(const void *)in_row(one, y);
        const float *b = (const float *)(const void *)in_row(other, y);
        float *to = (float *)(void *)out_row(out, y);
        for (int32_t i = 0; i < k->width; ++i, a += k->step_a, b += k->step_b) {
            const float x = *a, z = *b;
            to[i] = clamped_f32(VALUE, k->low, k->high);
        }
    }
}
