#include "kernel.h"
#include "rows.h"
#include "requantise.h"
#include "pair_layer.h"

/* One for each of
   THE_KERNEL | ORDER | WHAT
   maximum_s8 | >     | larger
   minimum_s8 | <     | smaller */

/* The WHAT of two bytes of one scale; rows [first, end). */
KERNEL THE_KERNEL(const pair_layer *k, in_rows one, in_rows other, out_rows out, int32_t first,
                  int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        const int8_t *a = (const int8_t *)in_row(one, y);
        const int8_t *b = (const int8_t *)in_row(other, y);
        int8_t *to = (int8_t *)out_row(out, y);
        for (int32_t i = 0; i < k->width; ++i, a += k->step_a, b += k->step_b) {
            const int32_t x = *a, z = *b;
            to[i] = (int8_t)clamped(x ORDER z ? x : z, k->low, k->high);
        }
    }
}
