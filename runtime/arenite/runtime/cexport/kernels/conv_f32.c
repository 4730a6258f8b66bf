#include "common.h"

/* One for each column of
   LAYER      | conv_layer_f32 | conv_layer_f16 | conv_layer_bf16
   DOT4       | dot4_f32       | dot4_f16       | dot4_bf16
   CONV       | conv_f32       | conv_f16       | conv_bf16
   POINTWISE  | pointwise_f32  | pointwise_f16  | pointwise_bf16
   DEPTHWISE  | depthwise_f32  | depthwise_f16  | depthwise_bf16
   TRANSPOSED | transposed_f32 | transposed_f16 | transposed_bf16
   STORED     | float          | uint16_t       | uint16_t
   NUMBER     | (float)        | half_of        | upper_of */

/* A convolution of floats. Filters lie in blocks of four outputs, side by side. */
typedef struct {
    int32_t height, width, depth;
    int32_t out_width, out_depth, groups;
    int32_t kernel_y, kernel_x, stride_y, stride_x, dilation_y, dilation_x, top, left;
    float low, high;
    const STORED *filter;
    const float *bias;
} LAYER;

/* Add the products of `count` inputs with the weights of four outputs to their sums. */
static inline void DOT4(float *sums, const float *input, const STORED *filter, int32_t count)
{
    float a = sums[0], b = sums[1], c = sums[2], d = sums[3];
    for (const float *end = input + count; input < end; ++input, filter += 4) {
        a += *input * NUMBER(filter[0]);
        b += *input * NUMBER(filter[1]);
        c += *input * NUMBER(filter[2]);
        d += *input * NUMBER(filter[3]);
    }
    sums[0] = a;
    sums[1] = b;
    sums[2] = c;
    sums[3] = d;
}

/* Convolution, rows [first, end) of the result; pixel by pixel, four outputs at a time. */
KERNEL CONV(const LAYER *k, in_rows in, out_rows out, int32_t first, int32_t end)
{
    const int32_t depth = k->depth / k->groups, outputs = k->out_depth / k->groups;
    const int32_t blocks = (outputs + 3) / 4, block_size = 4 * k->kernel_y * k->kernel_x * depth;
    const int is_run = k->groups == 1 && k->dilation_x == 1;
    for (int32_t y = first; y < end; ++y) {
        const int32_t top = y * k->stride_y - k->top;
        const taps rows = taps_inside(top, k->dilation_y, k->kernel_y, k->height);
        float *to = (float *)(void *)out_row(out, y);
        for (int32_t x = 0; x < k->out_width; ++x, to += k->out_depth) {
            const int32_t left = x * k->stride_x - k->left;
            const taps columns = taps_inside(left, k->dilation_x, k->kernel_x, k->width);
            const int32_t width = columns.end - columns.first;
            /* Taps side by side are read in one run where the image has them so. */
            const int32_t runs = is_run ? 1 : width, run = is_run ? width * depth : depth;
            const int32_t start = (left + columns.first * k->dilation_x) * k->depth;
            for (int32_t block = 0; block < blocks * k->groups; ++block) {
                const int32_t group = block / blocks, c = 4 * (block - group * blocks);
                const STORED *filter = k->filter + block * block_size;
                float *result = to + group * outputs + c;
                float sums[4];
                for (int32_t i = 0; i < 4; ++i)
                    sums[i] = k->bias[4 * block + i];
                for (int32_t row = rows.first; row < rows.end; ++row) {
                    const float *from =
                        (const float *)(const void *)in_row(in, top + row * k->dilation_y);
                    const STORED *weights =
                        filter + 4 * (row * k->kernel_x + columns.first) * depth;
                    from += start + group * depth;
                    for (int32_t i = 0; i < runs; ++i) {
                        DOT4(sums, from, weights, run);
                        from += k->dilation_x * k->depth;
                        weights += 4 * depth;
                    }
                }
                for (int32_t i = 0; i < 4 && i < outputs - c; ++i)
                    result[i] = clamped_f32(sums[i], k->low, k->high);
            }
        }
    }
}

/* Convolution with a window of one pixel, or a product with a matrix; rows [first, end). */
KERNEL POINTWISE(const LAYER *k, in_rows in, out_rows out, int32_t first, int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        const float *from = (const float *)(const void *)in_row(in, y * k->stride_y);
        float *to = (float *)(void *)out_row(out, y);
        for (int32_t x = 0; x < k->out_width; ++x, from += k->stride_x * k->depth) {
            const STORED *filter = k->filter;
            const float *bias = k->bias;
            for (int32_t left = k->out_depth; left > 0; left -= 4, bias += 4) {
                float sums[4];
                for (int32_t i = 0; i < 4; ++i)
                    sums[i] = bias[i];
                DOT4(sums, from, filter, k->depth);
                filter += 4 * k->depth;
                for (int32_t i = 0; i < 4 && i < left; ++i)
                    *to++ = clamped_f32(sums[i], k->low, k->high);
            }
        }
    }
}

/* Depthwise convolution, rows [first, end) of the result. The filter is rows, columns, outputs;
   `out_depth` is a multiple of `depth`. */
KERNEL DEPTHWISE(const LAYER *k, in_rows in, out_rows out, int32_t first, int32_t end)
{
    const int32_t depth = k->depth, outputs = k->out_depth, multiplier = outputs / depth;
    for (int32_t y = first; y < end; ++y) {
        const int32_t top = y * k->stride_y - k->top;
        const taps rows = taps_inside(top, k->dilation_y, k->kernel_y, k->height);
        float *to = (float *)(void *)out_row(out, y);
        for (int32_t x = 0; x < k->out_width; ++x) {
            const int32_t left = x * k->stride_x - k->left;
            const taps columns = taps_inside(left, k->dilation_x, k->kernel_x, k->width);
            const int32_t start = (left + columns.first * k->dilation_x) * depth;
            for (int32_t o = 0; o < outputs; ++o) {
                float sum = k->bias[o];
                for (int32_t row = rows.first; row < rows.end; ++row) {
                    const float *from =
                        (const float *)(const void *)in_row(in, top + row * k->dilation_y);
                    const STORED *w = k->filter + (row * k->kernel_x + columns.first) * outputs + o;
                    from += start + o / multiplier;
                    for (int32_t i = columns.first; i < columns.end; ++i) {
                        sum += *from * NUMBER(*w);
                        from += k->dilation_x * depth;
                        w += outputs;
                    }
                }
                *to++ = clamped_f32(sum, k->low, k->high);
            }
        }
    }
}

/* Transposed convolution, rows [first, end) of the result. The filter is outputs, rows, columns,
   inputs of a group. */
KERNEL TRANSPOSED(const LAYER *k, in_rows in, out_rows out, int32_t first, int32_t end)
{
    const int32_t depth = k->depth / k->groups, outputs = k->out_depth / k->groups;
    for (int32_t y = first; y < end; ++y) {
        float *to = (float *)(void *)out_row(out, y);
        for (int32_t x = 0; x < k->out_width; ++x)
            for (int32_t o = 0; o < k->out_depth; ++o) {
                const STORED *weights = k->filter + o * k->kernel_y * k->kernel_x * depth;
                float sum = k->bias[o];
                for (int32_t row = 0; row < k->kernel_y; ++row) {
                    const int32_t v = y + k->top - row * k->dilation_y;
                    for (int32_t column = 0; column < k->kernel_x; ++column, weights += depth) {
                        const int32_t u = x + k->left - column * k->dilation_x;
                        if (!is_tap(v, k->stride_y, k->height) || !is_tap(u, k->stride_x, k->width))
                            continue;
                        const float *from =
                            (const float *)(const void *)in_row(in, v / k->stride_y);
                        from += u / k->stride_x * k->depth + o / outputs * depth;
                        for (int32_t i = 0; i < depth; ++i)
                            sum += from[i] * NUMBER(weights[i]);
                    }
                }
                *to++ = clamped_f32(sum, k->low, k->high);
            }
    }
}
