#include "kernel.h"
#include "rows.h"
#include "clamp_f32.h"
#include "binary_layer_f32.h"

/* One for each of
   THE_KERNEL             | VALUE             | WHAT
   add_f32                | x + z             | A sum of two floats
   subtract_f32           | x - z             | A difference of two floats
   multiply_f32           | x * z             | A product of two floats
   divide_f32             | x / z             | A quotient of two floats
   maximum_f32            | x > z ? x : z     | The larger of two floats
   minimum_f32            | x < z ? x : z     | The smaller of two floats
   squared_difference_f32 | (x - z) * (x - z) | The square of the difference of two floats */

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
