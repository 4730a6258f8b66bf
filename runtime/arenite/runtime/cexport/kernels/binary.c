#include "common.h"
#include "add_layer.h"

/* Two tensors, element by element; either may repeat along a row. */
typedef struct {
    int32_t width, step_a, step_b;
} binary_layer;

/* Two tensors of floats, element by element; either may repeat along a row. */
typedef struct {
    int32_t width, step_a, step_b;
    float low, high;
} binary_layer_f32;

static inline float bounded_f32(const binary_layer_f32 *k, float value)
{
    return clamped_f32(value, k->low, k->high);
}

/* Two tensors of integers of one scale, element by element; either may repeat along a row. */
typedef struct {
    int32_t width, step_a, step_b, low, high;
} pair_layer;

static inline int32_t bounded(const pair_layer *k, int32_t value)
{
    return clamped(value, k->low, k->high);
}

/* The square of a difference. */
static inline int32_t squared_s8(const add_layer *k, int32_t a, int32_t b)
{
    const int32_t x = (a + k->offset_a) * (1 << 7), z = (b + k->offset_b) * (1 << 7);
    const int32_t apart =
        requantised(x, k->factor_a, k->shift_a) - requantised(z, k->factor_b, k->shift_b);
    const int32_t value = requantised(apart * apart, k->factor, k->shift);
    return clamped(value + k->out_zero, k->low, k->high);
}

/* A number, or a negative one times its slope. */
static inline int32_t sloped_s8(const add_layer *k, int32_t a, int32_t b)
{
    const int32_t x = a + k->offset_a;
    const int32_t value = x >= 0 ? requantised(x, k->factor_a, k->shift_a)
                                 : requantised(x * (b + k->offset_b), k->factor, k->shift);
    return clamped(value + k->out_zero, k->low, k->high);
}

/* A sum of two tensors of bytes, each times a factor, over a power of two, halves upwards. */
typedef struct {
    int32_t width, step_a, step_b, bias, factor_a, factor_b, shift, out_zero, low, high;
} add_even_layer;

static inline int32_t added_even_s8(const add_even_layer *k, int32_t a, int32_t b)
{
    const int32_t sum = k->bias + a * k->factor_a + b * k->factor_b;
    return clamped((sum >> k->shift) + k->out_zero, k->low, k->high);
}

/* A product of two tensors of integers. */
typedef struct {
    int32_t width, step_a, step_b, offset_a, offset_b, factor, shift, out_zero, low, high;
} multiply_layer;

static inline int32_t multiplied(const multiply_layer *k, int32_t a, int32_t b)
{
    const int32_t product = (a + k->offset_a) * (b + k->offset_b);
    return clamped(requantised(product, k->factor, k->shift) + k->out_zero, k->low, k->high);
}

/* A product of two tensors of bytes, halves to the even integer. */
typedef struct {
    int32_t width, step_a, step_b, offset_a, offset_b, out_zero, low, high;
    float ratio;
} multiply_even_layer;

static inline int32_t multiplied_even_s8(const multiply_even_layer *k, int32_t a, int32_t b)
{
    const int32_t product = (a + k->offset_a) * (b + k->offset_b);
    return clamped(nearest_even((float)product * k->ratio) + k->out_zero, k->low, k->high);
}

/* Two tensors of bytes as numbers, and their result, halves to the even integer. */
typedef struct {
    int32_t width, step_a, step_b, zero_a, zero_b, out_zero;
    float scale_a, scale_b, out_scale, low, high;
} numbers_layer;

/* One for each of
   OF_NUMBERS         | VALUE
   numbers_sum        | x + z
   numbers_difference | x - z
   numbers_quotient   | x / z
   numbers_larger     | x > z ? x : z
   numbers_smaller    | x < z ? x : z
   numbers_square     | (x - z) * (x - z)
   numbers_prelu      | x < 0.0f ? x * z : x */

static inline int32_t OF_NUMBERS(const numbers_layer *k, int32_t a, int32_t b)
{
    const float x = k->scale_a * (float)(a - k->zero_a), z = k->scale_b * (float)(b - k->zero_b);
    const float value = clamped_f32(VALUE, k->low, k->high);
    return clamped(nearest_even(value / k->out_scale) + k->out_zero, -128, 127);
}

/* The largest integer that is not above x / z; 0 for a division by 0. */
static inline int32_t floor_of_quotient(int32_t x, int32_t z)
{
    if (z == 0 || z == -1) {
        return z == 0 ? 0 : (int32_t)(0u - (uint32_t)x);
    }
    return x / z - (x % z != 0 && (x < 0) != (z < 0));
}

/* One for each of
   THE_KERNEL        | THE_LAYER        | IN      | OUT     | VALUE
   add_f32           | binary_layer_f32 | float   | float   | bounded_f32(k, x + z)
   subtract_f32      | binary_layer_f32 | float   | float   | bounded_f32(k, x - z)
   multiply_f32      | binary_layer_f32 | float   | float   | bounded_f32(k, x * z)
   divide_f32        | binary_layer_f32 | float   | float   | bounded_f32(k, x / z)
   power_f32         | binary_layer_f32 | float   | float   | bounded_f32(k, powf(x, z))
   modulus_f32       | binary_layer_f32 | float   | float   | bounded_f32(k, x - z * floorf(x / z))
   floor_divide_f32  | binary_layer_f32 | float   | float   | bounded_f32(k, floorf(x / z))
   maximum_f32       | binary_layer_f32 | float   | float   | bounded_f32(k, x > z ? x : z)
   minimum_f32       | binary_layer_f32 | float   | float   | bounded_f32(k, x < z ? x : z)
   squared_difference_f32 | binary_layer_f32 | float   | float   | bounded_f32(k, (x - z) * (x - z))
   prelu_f32         | binary_layer_f32 | float   | float   | bounded_f32(k, x < 0.0f ? x * z : x)
   multiply_s8       | multiply_layer   | int8_t  | int8_t  | multiplied(k, x, z)
   squared_difference_s8 | add_layer    | int8_t  | int8_t  | squared_s8(k, x, z)
   prelu_s8          | add_layer        | int8_t  | int8_t  | sloped_s8(k, x, z)
   maximum_s8        | pair_layer       | int8_t  | int8_t  | bounded(k, x > z ? x : z)
   minimum_s8        | pair_layer       | int8_t  | int8_t  | bounded(k, x < z ? x : z)
   multiply_s16      | multiply_layer   | int16_t | int16_t | multiplied(k, x, z)
   maximum_s16       | pair_layer       | int16_t | int16_t | bounded(k, x > z ? x : z)
   minimum_s16       | pair_layer       | int16_t | int16_t | bounded(k, x < z ? x : z)
   add_even_s8       | add_even_layer   | int8_t  | int8_t  | added_even_s8(k, x, z)
   multiply_even_s8  | multiply_even_layer | int8_t  | int8_t  | multiplied_even_s8(k, x, z)
   add_numbers_s8    | numbers_layer    | int8_t  | int8_t  | numbers_sum(k, x, z)
   subtract_numbers_s8 | numbers_layer    | int8_t  | int8_t  | numbers_difference(k, x, z)
   divide_numbers_s8 | numbers_layer    | int8_t  | int8_t  | numbers_quotient(k, x, z)
   maximum_numbers_s8 | numbers_layer    | int8_t  | int8_t  | numbers_larger(k, x, z)
   minimum_numbers_s8 | numbers_layer    | int8_t  | int8_t  | numbers_smaller(k, x, z)
   squared_difference_numbers_s8 | numbers_layer    | int8_t  | int8_t  | numbers_square(k, x, z)
   prelu_numbers_s8  | numbers_layer    | int8_t  | int8_t  | numbers_prelu(k, x, z)
   add_s32           | binary_layer     | int32_t | int32_t | (uint32_t)x + (uint32_t)z
   subtract_s32      | binary_layer     | int32_t | int32_t | (uint32_t)x - (uint32_t)z
   multiply_s32      | binary_layer     | int32_t | int32_t | (uint32_t)x * (uint32_t)z
   maximum_s32       | binary_layer     | int32_t | int32_t | x > z ? x : z
   minimum_s32       | binary_layer     | int32_t | int32_t | x < z ? x : z
   floor_divide_s32  | binary_layer     | int32_t | int32_t | floor_of_quotient(x, z)
   add_s64           | binary_layer     | int64_t | int64_t | (uint64_t)x + (uint64_t)z
   subtract_s64      | binary_layer     | int64_t | int64_t | (uint64_t)x - (uint64_t)z
   multiply_s64      | binary_layer     | int64_t | int64_t | (uint64_t)x * (uint64_t)z
   maximum_s64       | binary_layer     | int64_t | int64_t | x > z ? x : z
   minimum_s64       | binary_layer     | int64_t | int64_t | x < z ? x : z
   equal_f32         | binary_layer     | float   | uint8_t | x == z
   not_equal_f32     | binary_layer     | float   | uint8_t | x != z
   less_f32          | binary_layer     | float   | uint8_t | x < z
   less_equal_f32    | binary_layer     | float   | uint8_t | x <= z
   greater_f32       | binary_layer     | float   | uint8_t | x > z
   greater_equal_f32 | binary_layer     | float   | uint8_t | x >= z
   equal_s32         | binary_layer     | int32_t | uint8_t | x == z
   not_equal_s32     | binary_layer     | int32_t | uint8_t | x != z
   less_s32          | binary_layer     | int32_t | uint8_t | x < z
   less_equal_s32    | binary_layer     | int32_t | uint8_t | x <= z
   greater_s32       | binary_layer     | int32_t | uint8_t | x > z
   greater_equal_s32 | binary_layer     | int32_t | uint8_t | x >= z
   equal_s64         | binary_layer     | int64_t | uint8_t | x == z
   not_equal_s64     | binary_layer     | int64_t | uint8_t | x != z
   less_s64          | binary_layer     | int64_t | uint8_t | x < z
   less_equal_s64    | binary_layer     | int64_t | uint8_t | x <= z
   greater_s64       | binary_layer     | int64_t | uint8_t | x > z
   greater_equal_s64 | binary_layer     | int64_t | uint8_t | x >= z
   logical_and_bool  | binary_layer     | uint8_t | uint8_t | x && z
   logical_or_bool   | binary_layer     | uint8_t | uint8_t | x || z
   logical_xor_bool  | binary_layer     | uint8_t | uint8_t | !x != !z
   not_equal_bool    | binary_layer     | uint8_t | uint8_t | !x != !z
   equal_bool        | binary_layer     | uint8_t | uint8_t | !x == !z */

/* A function of two tensors; rows [first, end). */
KERNEL THE_KERNEL(const THE_LAYER *k, in_rows one, in_rows other, out_rows out, int32_t first,
                  int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        const IN *a = (const IN *)(const void *)in_row(one, y);
        const IN *b = (const IN *)(const void *)in_row(other, y);
        OUT *to = (OUT *)(void *)out_row(out, y);
        for (int32_t i = 0; i < k->width; ++i, a += k->step_a, b += k->step_b) {
            const IN x = *a, z = *b;
            to[i] = (OUT)(VALUE);
        }
    }
}
