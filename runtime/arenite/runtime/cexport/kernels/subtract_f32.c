#include "kernel.h"
#include "rows.h"
#include "clamp_f32.h"
#include "binary_layer_f32.h"

/* A difference of two floats; rows [first, end). */
KERNEL subtract_f32(const binary_layer_f32 *k, in_rows one, in_rows other, out_rows out,
                    int32_t first, int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        const float *a = (const float *)(const void *)in_row(one, y);
        const float *b = (const float *)(const void *)in_row(other, y);
        float *to = (float *)(void *)out_row(out, y);
        for (int32_t i = 0; i < k->width; ++i, a += k->step_a, b += k->step_b) {
            const float x = *a, z = *b;
            to[i] = clamped_f32(x - z, k->low, k->high);
        }
    }
}
