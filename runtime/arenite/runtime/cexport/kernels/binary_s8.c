#include "common.h"

/* A sum of two tensors of bytes, or their difference; either may repeat along a row. */
typedef struct {
    int32_t width, step_a, step_b, offset_a, offset_b;
    int32_t factor_a, shift_a, factor_b, shift_b, sign, factor, shift;
    int32_t out_zero, low, high;
} add_layer;

/* Rows [first, end) of a sum. */
KERNEL add_s8(const add_layer *k, in_rows one, in_rows other, out_rows out, int32_t first,
              int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        const int8_t *a = (const int8_t *)in_row(one, y);
        const int8_t *b = (const int8_t *)in_row(other, y);
        int8_t *to = (int8_t *)out_row(out, y);
        for (int32_t i = 0; i < k->width; ++i, a += k->step_a, b += k->step_b) {
            const int32_t x = (*a + k->offset_a) * (1 << 20), z = (*b + k->offset_b) * (1 << 20);
            const int32_t sum = requantised(x, k->factor_a, k->shift_a) +
                                k->sign * requantised(z, k->factor_b, k->shift_b);
            const int32_t value = requantised(sum, k->factor, k->shift) + k->out_zero;
            to[i] = (int8_t)clamped(value, k->low, k->high);
        }
    }
}

/* A product of two tensors of bytes, element by element; either may repeat along a row. */
typedef struct {
    int32_t width, step_a, step_b, offset_a, offset_b, factor, shift, out_zero, low, high;
} multiply_layer;

/* Rows [first, end) of a product. */
KERNEL multiply_s8(const multiply_layer *k, in_rows one, in_rows other, out_rows out, int32_t first,
                   int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        const int8_t *a = (const int8_t *)in_row(one, y);
        const int8_t *b = (const int8_t *)in_row(other, y);
        int8_t *to = (int8_t *)out_row(out, y);
        for (int32_t i = 0; i < k->width; ++i, a += k->step_a, b += k->step_b) {
            const int32_t product = (*a + k->offset_a) * (*b + k->offset_b);
            const int32_t value = requantised(product, k->factor, k->shift) + k->out_zero;
            to[i] = (int8_t)clamped(value, k->low, k->high);
        }
    }
}

/* Two tensors of bytes, element by element; either may repeat along a row. */
typedef struct {
    int32_t width, step_a, step_b, low, high;
} pair_layer;

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
