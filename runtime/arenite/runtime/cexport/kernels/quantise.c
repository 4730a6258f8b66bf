#include "common.h"

/* A float without its fraction, within the range of 32 bits; NaN becomes 0. */
static inline int32_t whole_32(float x)
{
    return x != x                ? 0
           : x >= 2147483648.0f  ? 2147483647
           : x <= -2147483648.0f ? -2147483647 - 1
                                 : (int32_t)x;
}

/* The same of 64 bits. */
static inline int64_t whole_64(float x)
{
    return x != x                         ? 0
           : x >= 9223372036854775808.0f  ? INT64_MAX
           : x <= -9223372036854775808.0f ? INT64_MIN
                                          : (int64_t)x;
}

/* As `requantised`, of any number of 32 bits, for shifts to the right: with the half that is added
   a large one would not fit. */
static inline int32_t requantised_32(int32_t number, int32_t factor, int32_t shift)
{
#if SINGLE_ROUNDING
    return requantised(number, factor, shift);
#else
    const int64_t high = ((int64_t)number * factor + (1 << 30)) >> 31;
    const int64_t half = (int64_t)1 << -shift >> 1;
    return (int32_t)((high + half - (half > 0 && high < 0)) >> -shift);
#endif
}

/* One for each of
   THE_KERNEL  | RESULT  | BEYOND | LOWEST | HIGHEST
   quantise_s8 | int8_t  | 512    | -128   | 127
   quantise_s16 | int16_t | 65536 | -32768 | 32767 */

/* Floats to integers, halves away from zero; rows [first, end) of `width`. The result may lie on
   the first bytes of the operand. */
KERNEL THE_KERNEL(float scale, int32_t zero, int32_t width, in_rows in, out_rows out, int32_t first,
                  int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        const float *from = (const float *)(const void *)in_row(in, y);
        RESULT *to = (RESULT *)(void *)out_row(out, y);
        for (int32_t i = 0; i < width; ++i) {
            const float steps = roundf(from[i] / scale);
            /* Far outside the result's range the conversion to an integer would be undefined. */
            const int32_t value = steps < -BEYOND.0f  ? -BEYOND
                                  : steps > BEYOND.0f ? BEYOND
                                                      : (int32_t)steps;
            to[i] = (RESULT)clamped(value + zero, LOWEST, HIGHEST);
        }
    }
}

/* One for each of
   THE_KERNEL     | SOURCE
   dequantise_s8  | int8_t
   dequantise_s16 | int16_t */

/* Integers to floats; rows [first, end) of `width`. */
KERNEL THE_KERNEL(float scale, int32_t zero, int32_t width, in_rows in, out_rows out, int32_t first,
                  int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        const SOURCE *from = (const SOURCE *)(const void *)in_row(in, y);
        float *to = (float *)(void *)out_row(out, y);
        for (int32_t i = 0; i < width; ++i)
            to[i] = scale * (float)(from[i] - zero);
    }
}

/* One for each of
   THE_KERNEL         | SOURCE  | RESULT  | LOWEST | HIGHEST | SCALED
   requantise_s8_s16  | int8_t  | int16_t | -32768 | 32767   | requantised
   requantise_s16_s8  | int16_t | int8_t  | -128   | 127     | requantised
   requantise_s16_s16 | int16_t | int16_t | -32768 | 32767   | requantised
   requantise_s16_s32 | int16_t | int32_t | (-2147483647 - 1) | 2147483647 | requantised
   requantise_s32_s8  | int32_t | int8_t  | -128   | 127     | requantised_32
   requantise_s32_s16 | int32_t | int16_t | -32768 | 32767   | requantised_32 */

/* Integers of one scale to those of another; rows [first, end) of `width`. */
KERNEL THE_KERNEL(int32_t from_zero, int32_t factor, int32_t shift, int32_t to_zero, int32_t width,
                  in_rows in, out_rows out, int32_t first, int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        const SOURCE *from = (const SOURCE *)(const void *)in_row(in, y);
        RESULT *to = (RESULT *)(void *)out_row(out, y);
        for (int32_t i = 0; i < width; ++i) {
            const int32_t value = SCALED(from[i] - from_zero, factor, shift);
            to[i] = (RESULT)clamped(value + to_zero, LOWEST, HIGHEST);
        }
    }
}

/* One for each of
   THE_KERNEL        | RESULT  | LOWEST | HIGHEST
   quantise_even_s8  | int8_t  | -128   | 127
   quantise_even_s16 | int16_t | -32768 | 32767 */

/* Floats to integers, halves to the even one; rows [first, end) of `width`. The result may lie on
   the first bytes of the operand. */
KERNEL THE_KERNEL(float scale, int32_t zero, int32_t width, in_rows in, out_rows out, int32_t first,
                  int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        const float *from = (const float *)(const void *)in_row(in, y);
        RESULT *to = (RESULT *)(void *)out_row(out, y);
        for (int32_t i = 0; i < width; ++i)
            to[i] = (RESULT)clamped(nearest_even(from[i] / scale) + zero, LOWEST, HIGHEST);
    }
}

/* One for each of
   THE_KERNEL       | SOURCE  | RESULT  | VALUE
   convert_bool_f32 | uint8_t | float   | x != 0
   convert_s32_f32  | int32_t | float   | x
   convert_s64_f32  | int64_t | float   | x
   convert_f32_bool | float   | uint8_t | x != 0.0f
   convert_s32_bool | int32_t | uint8_t | x != 0
   convert_s64_bool | int64_t | uint8_t | x != 0
   convert_bool_s32 | uint8_t | int32_t | x != 0
   convert_bool_s64 | uint8_t | int64_t | x != 0
   convert_s32_s64  | int32_t | int64_t | x
   convert_s64_s32  | int64_t | int32_t | x
   convert_s16_s32  | int16_t | int32_t | x
   convert_s32_s16  | int32_t | int16_t | x
   convert_f32_s32  | float   | int32_t | whole_32(x)
   convert_f32_s64  | float   | int64_t | whole_64(x) */

/* Elements of one type to another; rows [first, end) of `width`. */
KERNEL THE_KERNEL(int32_t width, in_rows in, out_rows out, int32_t first, int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        const SOURCE *from = (const SOURCE *)(const void *)in_row(in, y);
        RESULT *to = (RESULT *)(void *)out_row(out, y);
        for (int32_t i = 0; i < width; ++i) {
            const SOURCE x = from[i];
            to[i] = (RESULT)(VALUE);
        }
    }
}
