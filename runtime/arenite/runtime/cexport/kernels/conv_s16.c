#include "common.h"
#include "dsp.h"

/* A convolution of integers of 16 bits with weights of bytes, one scale for each of them. */
typedef struct {
    int32_t depth, out_depth;
    int16_t height, width, out_width, groups;
    int16_t kernel_y, kernel_x, stride_y, stride_x, dilation_y, dilation_x, top, left;
    int16_t low, high, factor_step;
    const int8_t *filter;
    const void *bias;
    const void *factors;
    const int8_t *shifts;
} conv_layer_s16;

/* sum * factor / 2^shift, halves rounded up. */
static inline int32_t over_power(int64_t sum, int32_t factor, int32_t shift)
{
    return (int32_t)((sum * factor + ((int64_t)1 << (shift - 1))) >> shift);
}

/* Add the products of inputs with the weights of four outputs to their sums. Weights of two inputs
   share two words: those of outputs 0 and 1, then those of 2 and 3. */
static inline void dot4_s16(int64_t *sums, const int16_t *input, const int8_t *filter,
                            int32_t count)
{
    /* Products of 22 bits: so many add up in 32. */
    for (int32_t some = 0; count > 0; count -= some) {
        int32_t a = 0, b = 0, c = 0, d = 0;
        some = count < 256 ? count : 256;
        for (const int16_t *end = input + (some & ~1); input < end; input += 2, filter += 8) {
#if HAS_DSP
            const uint32_t x = four_bytes(input), v = four_bytes(filter),
                           w = four_bytes(filter + 4);
            a = plus_products(a, x, even_bytes(v));
            b = plus_products(b, x, odd_bytes(v));
            c = plus_products(c, x, even_bytes(w));
            d = plus_products(d, x, odd_bytes(w));
#else
            const int32_t x = input[0], z = input[1];
            a += x * filter[0] + z * filter[2];
            b += x * filter[1] + z * filter[3];
            c += x * filter[4] + z * filter[6];
            d += x * filter[5] + z * filter[7];
#endif
        }
        if (some & 1) {
            const int32_t x = *input++;
            a += x * filter[0];
            b += x * filter[1];
            c += x * filter[2];
            d += x * filter[3];
            filter += 4;
        }
        sums[0] += a;
        sums[1] += b;
        sums[2] += c;
        sums[3] += d;
    }
}

/* One for each column of
   CONV       | conv_s16       | conv_wide_s16       | conv_narrow_s16
   DEPTHWISE  | depthwise_s16  | depthwise_wide_s16  | depthwise_narrow_s16
   TRANSPOSED | transposed_s16 | transposed_wide_s16 | transposed_narrow_s16
   RESULT_OF  | result_of      | result_of_wide      | result_of_narrow
   BIAS       | int32_t        | int64_t             | int32_t
   FACTOR     | int16_t        | int16_t             | int32_t
   STEPS      | over_power(sum, factor, shift)
              | over_power(sum, factor, shift)
              | requantised((int32_t)sum, factor, shift) */

/* The result of an output, from the sum of its products. */
static inline int16_t RESULT_OF(const conv_layer_s16 *k, int64_t products, int32_t output)
{
    const int32_t at = output * k->factor_step;
    const int32_t factor = ((const FACTOR *)k->factors)[at], shift = k->shifts[at];
    const int64_t sum = products + ((const BIAS *)k->bias)[output];
    return (int16_t)clamped(STEPS, k->low, k->high);
}

/* Convolution, rows [first, end) of the result; pixel by pixel, four outputs at a time. */
KERNEL CONV(const conv_layer_s16 *k, in_rows in, out_rows out, int32_t first, int32_t end)
{
    const int32_t depth = k->depth / k->groups, outputs = k->out_depth / k->groups;
    for (int32_t y = first; y < end; ++y) {
        const int32_t top = y * k->stride_y - k->top;
        const taps rows = taps_inside(top, k->dilation_y, k->kernel_y, k->height);
        int16_t *to = (int16_t *)(void *)out_row(out, y);
        for (int32_t x = 0; x < k->out_width; ++x) {
            const int32_t left = x * k->stride_x - k->left;
            const taps columns = taps_inside(left, k->dilation_x, k->kernel_x, k->width);
            /* Taps side by side are read in one run where inputs and weights have them so. */
            const int is_run = k->groups == 1 && k->dilation_x == 1 && depth % 2 == 0;
            const int32_t runs = is_run ? 1 : columns.end - columns.first;
            const int32_t run = is_run ? (columns.end - columns.first) * depth : depth;
            int32_t start = (left + columns.first * k->dilation_x) * k->depth;
            int32_t output = 0, block = 0;
            for (int32_t group = 0; group < k->groups; ++group, start += depth) {
                for (int32_t rest = outputs; rest > 0; rest -= 4, ++block) {
                    const int32_t place = block * k->kernel_y * k->kernel_x + columns.first;
                    const int8_t *filter = k->filter + 4 * place * depth;
                    int64_t sums[4] = {0, 0, 0, 0};
                    for (int32_t row = rows.first; row < rows.end; ++row) {
                        const uint8_t *line = in_row(in, top + row * k->dilation_y);
                        const int16_t *from = (const int16_t *)(const void *)line + start;
                        const int8_t *weights = filter + 4 * row * k->kernel_x * depth;
                        for (int32_t i = 0; i < runs; ++i) {
                            dot4_s16(sums, from, weights, run);
                            from += k->dilation_x * k->depth;
                            weights += 4 * depth;
                        }
                    }
                    for (int32_t i = 0; i < 4 && i < rest; ++i, ++output)
                        *to++ = RESULT_OF(k, sums[i], output);
                }
            }
        }
    }
}

/* Depthwise convolution, rows [first, end) of the result. The filter is rows, columns, outputs;
   `out_depth` is a multiple of `depth`. */
KERNEL DEPTHWISE(const conv_layer_s16 *k, in_rows in, out_rows out, int32_t first, int32_t end)
{
    const int32_t depth = k->depth, outputs = k->out_depth, multiplier = outputs / depth;
    const int32_t step = k->dilation_x * depth;
    for (int32_t y = first; y < end; ++y) {
        const int32_t top = y * k->stride_y - k->top;
        const taps rows = taps_inside(top, k->dilation_y, k->kernel_y, k->height);
        int16_t *to = (int16_t *)(void *)out_row(out, y);
        for (int32_t x = 0; x < k->out_width; ++x) {
            const int32_t left = x * k->stride_x - k->left;
            const taps columns = taps_inside(left, k->dilation_x, k->kernel_x, k->width);
            const int32_t start = (left + columns.first * k->dilation_x) * depth;
            for (int32_t o = 0; o < outputs; ++o) {
                const int8_t *w = k->filter + (rows.first * k->kernel_x + columns.first) * outputs;
                int64_t sum = 0;
                for (int32_t row = rows.first; row < rows.end; ++row) {
                    const uint8_t *line = in_row(in, top + row * k->dilation_y);
                    const int16_t *from = (const int16_t *)(const void *)line + start;
                    from += multiplier == 1 ? o : o / multiplier;
                    for (int32_t i = columns.first; i < columns.end; ++i, from += step)
                        sum += *from * w[(i - columns.first) * outputs + o];
                    w += k->kernel_x * outputs;
                }
                *to++ = RESULT_OF(k, sum, o);
            }
        }
    }
}

/* Transposed convolution, rows [first, end) of the result. The filter is outputs, rows, columns,
   inputs of a group. */
KERNEL TRANSPOSED(const conv_layer_s16 *k, in_rows in, out_rows out, int32_t first, int32_t end)
{
    const int32_t depth = k->depth / k->groups, outputs = k->out_depth / k->groups;
    for (int32_t y = first; y < end; ++y) {
        int16_t *to = (int16_t *)(void *)out_row(out, y);
        for (int32_t x = 0; x < k->out_width; ++x)
            for (int32_t o = 0; o < k->out_depth; ++o) {
                const int8_t *weights = k->filter + o * k->kernel_y * k->kernel_x * depth;
                int64_t sum = 0;
                for (int32_t row = 0; row < k->kernel_y; ++row) {
                    const int32_t v = y + k->top - row * k->dilation_y;
                    for (int32_t column = 0; column < k->kernel_x; ++column, weights += depth) {
                        const int32_t u = x + k->left - column * k->dilation_x;
                        if (!is_tap(v, k->stride_y, k->height) || !is_tap(u, k->stride_x, k->width))
                            continue;
                        const uint8_t *line = in_row(in, v / k->stride_y);
                        const int16_t *from = (const int16_t *)(const void *)line;
                        from += u / k->stride_x * k->depth + o / outputs * depth;
                        for (int32_t i = 0; i < depth; ++i)
                            sum += from[i] * weights[i];
                    }
                }
                *to++ = RESULT_OF(k, sum, o);
            }
    }
}
