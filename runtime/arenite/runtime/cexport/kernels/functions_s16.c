#include "common.h"
#include "logistic_s16.h"

/* Numbers of 16 bits times a factor, which negative ones have of their own; `sign` is that of
   theirs. */
typedef struct {
    int32_t width, factor, shift, factor_below, shift_below, sign, low, high;
} rescale_layer_s16;

/* Rows [first, end) of `width`. */
KERNEL rescale_s16(const rescale_layer_s16 *k, in_rows in, out_rows out, int32_t first, int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        const int16_t *from = (const int16_t *)(const void *)in_row(in, y);
        int16_t *to = (int16_t *)(void *)out_row(out, y);
        for (int32_t i = 0; i < k->width; ++i) {
            const int32_t value =
                from[i] >= 0 ? requantised(from[i], k->factor, k->shift)
                             : k->sign * requantised(from[i], k->factor_below, k->shift_below);
            to[i] = (int16_t)clamped(value, k->low, k->high);
        }
    }
}

/* Softmax of rows of `width` numbers of 16 bits. `exponentials` are 512 lines from exp(-10) to 1,
   `reciprocals` those of 1 / (1 + x) for x from 0 to 1. */
typedef struct {
    int32_t width, factor, shift;
    const int16_t *exponentials, *reciprocals;
} softmax_layer_s16;

static inline int32_t on_lines(const int16_t *lines, int32_t value)
{
    const int16_t *at = lines + 256 + (value >> 7);
    const int16_t slope = (int16_t)(at[1] - at[0]);
    return (int16_t)(at[0] + ((slope * (value & 0x7f) + 64) >> 7));
}

/* Rows [first, end); each row is read before it is written. */
KERNEL softmax_s16(const softmax_layer_s16 *k, in_rows in, out_rows out, int32_t first, int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        const int16_t *from = (const int16_t *)(const void *)in_row(in, y);
        int16_t *to = (int16_t *)(void *)out_row(out, y);
        int32_t most = -32768, sum = 0, bits = 0;
        for (int32_t i = 0; i < k->width; ++i)
            most = from[i] > most ? from[i] : most;
        for (int32_t i = 0; i < k->width; ++i) {
            const int32_t place = requantised(from[i] - most, k->factor, k->shift);
            const int32_t kept = place < -65535 ? -32768 : place + 32767;
            to[i] = (int16_t)on_lines(k->exponentials, kept);
            sum += to[i];
        }
        while (sum >> bits > 1)
            ++bits;
        const int32_t fraction = (int32_t)((((int64_t)sum << (30 - bits)) + (1 << 13)) >> 14);
        const int32_t scale = on_lines(k->reciprocals, clamped(fraction - 98304, -32768, 32767));
        const int64_t half = bits > 0 ? (int64_t)1 << (bits - 1) : 0;
        for (int32_t i = 0; i < k->width; ++i) {
            const int32_t value = (int32_t)(((int64_t)to[i] * scale + half) >> bits);
            to[i] = (int16_t)clamped(value, 0, 32767);
        }
    }
}

/* A function by a table. Operands times `factor` / 2^`shift` are three times numbers of 12 bits
   behind the point. */
typedef struct {
    int32_t width, factor, shift;
    const uint16_t *table;
} logistic_layer_s16;

/* One for each of
   THE_KERNEL   | FUNCTION
   logistic_s16 | logistic16
   tanh_s16     | tanh16 */

/* Rows [first, end) of `width`. */
KERNEL THE_KERNEL(const logistic_layer_s16 *k, in_rows in, out_rows out, int32_t first, int32_t end)
{
    const int32_t half = k->shift > 0 ? 1 << (k->shift - 1) : 0;
    for (int32_t y = first; y < end; ++y) {
        const int16_t *from = (const int16_t *)(const void *)in_row(in, y);
        int16_t *to = (int16_t *)(void *)out_row(out, y);
        for (int32_t i = 0; i < k->width; ++i)
            to[i] = FUNCTION(k->table, (from[i] * k->factor + half) >> k->shift);
    }
}
