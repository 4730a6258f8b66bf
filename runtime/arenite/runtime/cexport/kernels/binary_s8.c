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

/* A sum of two tensors of bytes, each times a factor, over a power of two, halves upwards. */
typedef struct {
    int32_t width, step_a, step_b, bias, factor_a, factor_b, shift, out_zero, low, high;
} add_even_layer;

/* Rows [first, end) of a sum. */
KERNEL add_even_s8(const add_even_layer *k, in_rows one, in_rows other, out_rows out, int32_t first,
                   int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        const int8_t *a = (const int8_t *)in_row(one, y);
        const int8_t *b = (const int8_t *)in_row(other, y);
        int8_t *to = (int8_t *)out_row(out, y);
        for (int32_t i = 0; i < k->width; ++i, a += k->step_a, b += k->step_b) {
            const int32_t sum = k->bias + *a * k->factor_a + *b * k->factor_b;
            to[i] = (int8_t)clamped((sum >> k->shift) + k->out_zero, k->low, k->high);
        }
    }
}

/* A product of two tensors of bytes, halves to the even integer. */
typedef struct {
    int32_t width, step_a, step_b, offset_a, offset_b, out_zero, low, high;
    float ratio;
} multiply_even_layer;

/* Rows [first, end) of a product. */
KERNEL multiply_even_s8(const multiply_even_layer *k, in_rows one, in_rows other, out_rows out,
                        int32_t first, int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        const int8_t *a = (const int8_t *)in_row(one, y);
        const int8_t *b = (const int8_t *)in_row(other, y);
        int8_t *to = (int8_t *)out_row(out, y);
        for (int32_t i = 0; i < k->width; ++i, a += k->step_a, b += k->step_b) {
            const int32_t product = (*a + k->offset_a) * (*b + k->offset_b);
            const int32_t value = nearest_even((float)product * k->ratio) + k->out_zero;
            to[i] = (int8_t)clamped(value, k->low, k->high);
        }
    }
}

/* Two tensors of bytes as numbers, and their result, halves to the even integer. */
typedef struct {
    int32_t width, step_a, step_b, zero_a, zero_b, out_zero;
    float scale_a, scale_b, out_scale, low, high;
} numbers_layer;

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

/* One for each of
   THE_KERNEL                 | VALUE
   add_numbers_s8             | x + z
   subtract_numbers_s8        | x - z
   divide_numbers_s8          | x / z
   maximum_numbers_s8         | x > z ? x : z
   minimum_numbers_s8         | x < z ? x : z
   squared_difference_numbers_s8 | (x - z) * (x - z)
   prelu_numbers_s8           | x < 0.0f ? x * z : x */

/* A function of two numbers; rows [first, end). */
KERNEL THE_KERNEL(const numbers_layer *k, in_rows one, in_rows other, out_rows out, int32_t first,
                  int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        const int8_t *a = (const int8_t *)in_row(one, y);
        const int8_t *b = (const int8_t *)in_row(other, y);
        int8_t *to = (int8_t *)out_row(out, y);
        for (int32_t i = 0; i < k->width; ++i, a += k->step_a, b += k->step_b) {
            const float x = k->scale_a * (float)(*a - k->zero_a);
            const float z = k->scale_b * (float)(*b - k->zero_b);
            const float value = clamped_f32(VALUE, k->low, k->high);
            const int32_t steps = nearest_even(value / k->out_scale) + k->out_zero;
            to[i] = (int8_t)clamped(steps, -128, 127);
        }
    }
}
