#include "common.h"

/* A convolution of floats that have been rounded to bytes, by bytes; or a product with a matrix.
   Filters lie in blocks of four outputs, side by side. `row_step` is 2 if each row has a scale of
   its own, 0 if an image has one; `scale_step` is 1 if each output has one. */
typedef struct {
    int32_t height, width, depth;
    int32_t out_width, out_depth, groups;
    int32_t kernel_y, kernel_x, stride_y, stride_x, dilation_y, dilation_x, top, left;
    int32_t row_step, scale_step, is_filter_first;
    float low, high;
    const int8_t *filter;
    const float *scales;
    const float *bias;
} conv_layer_hybrid;

/* A sum as a number: which scale it is multiplied by first decides on the last bit. */
static inline float number_of(const conv_layer_hybrid *k, int32_t sum, int32_t at, float scale)
{
    const float own = k->scales[at * k->scale_step];
    const float number = k->is_filter_first ? (float)sum * own * scale : (float)sum * (own * scale);
    return clamped_f32(number + k->bias[at], k->low, k->high);
}

/* Rows [first, end) of the result; pixel by pixel, four outputs at a time. */
KERNEL conv_hybrid(const conv_layer_hybrid *k, const float *scales, in_rows in, out_rows out,
                   int32_t first, int32_t end)
{
    const int32_t depth = k->depth / k->groups, outputs = k->out_depth / k->groups;
    const int32_t blocks = (outputs + 3) / 4, block_size = 4 * k->kernel_y * k->kernel_x * depth;
    const int is_run = k->groups == 1 && k->dilation_x == 1;
    for (int32_t y = first; y < end; ++y) {
        const float *const own = scales + y * k->row_step;
        const int32_t zero = (int32_t)own[1], top = y * k->stride_y - k->top;
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
                const int8_t *filter = k->filter + block * block_size;
                float *result = to + group * outputs + c;
                int32_t sums[4] = {0, 0, 0, 0};
                for (int32_t row = rows.first; row < rows.end; ++row) {
                    const int8_t *from = (const int8_t *)in_row(in, top + row * k->dilation_y);
                    const int8_t *w = filter + 4 * (row * k->kernel_x + columns.first) * depth;
                    from += start + group * depth;
                    for (int32_t i = 0; i < runs; ++i, from += k->dilation_x * k->depth) {
                        for (int32_t j = 0; j < run; ++j, w += 4) {
                            const int32_t value = from[j] - zero;
                            sums[0] += value * w[0];
                            sums[1] += value * w[1];
                            sums[2] += value * w[2];
                            sums[3] += value * w[3];
                        }
                    }
                }
                for (int32_t i = 0; i < 4 && i < outputs - c; ++i)
                    result[i] = number_of(k, sums[i], 4 * block + i, own[0]);
            }
        }
    }
}

/* Depthwise convolution, rows [first, end) of the result. The filter is rows, columns, outputs;
   `out_depth` is a multiple of `depth`. */
KERNEL depthwise_hybrid(const conv_layer_hybrid *k, const float *scales, in_rows in, out_rows out,
                        int32_t first, int32_t end)
{
    const int32_t depth = k->depth, outputs = k->out_depth, multiplier = outputs / depth;
    const int32_t zero = (int32_t)scales[1];
    for (int32_t y = first; y < end; ++y) {
        const int32_t top = y * k->stride_y - k->top;
        const taps rows = taps_inside(top, k->dilation_y, k->kernel_y, k->height);
        float *to = (float *)(void *)out_row(out, y);
        for (int32_t x = 0; x < k->out_width; ++x) {
            const int32_t left = x * k->stride_x - k->left;
            const taps columns = taps_inside(left, k->dilation_x, k->kernel_x, k->width);
            const int32_t start = (left + columns.first * k->dilation_x) * depth;
            for (int32_t o = 0; o < outputs; ++o) {
                int32_t sum = 0;
                for (int32_t row = rows.first; row < rows.end; ++row) {
                    const int8_t *from = (const int8_t *)in_row(in, top + row * k->dilation_y);
                    const int8_t *w = k->filter + (row * k->kernel_x + columns.first) * outputs + o;
                    from += start + o / multiplier;
                    for (int32_t i = columns.first; i < columns.end; ++i) {
                        sum += (*from - zero) * *w;
                        from += k->dilation_x * depth;
                        w += outputs;
                    }
                }
                *to++ = number_of(k, sum, o, scales[0]);
            }
        }
    }
}

/* One for each of
   THE_KERNEL               | LOWEST | HOW
   quantise_rows_symmetric  | -127   | so that the largest magnitude becomes 127
   quantise_rows_asymmetric | -128   | so that the least becomes -128 and the largest 127, 0 between
 */

/* Rows of `width` floats to bytes, HOW; of each row its scale and its zero point. */
KERNEL THE_KERNEL(int32_t rows, int32_t width, const float *in, int8_t *out, float *scales)
{
    for (int32_t y = 0; y < rows; ++y, in += width, out += width, scales += 2) {
        float low = 0.0f, high = 0.0f, zero = 0.0f, factor;
        for (int32_t i = 0; i < width; ++i) {
            low = in[i] < low ? in[i] : low;
            high = in[i] > high ? in[i] : high;
        }
        scales[0] = 1.0f;
        factor = 0.0f;
        if (LOWEST == -127) {
            high = -low > high ? -low : high;
            if (high > 0.0f) {
                scales[0] = high / 127.0f;
                factor = 127.0f / high;
            }
        } else if (low < high) {
            const float scale = (high - low) / 255.0f;
            const float least = low / scale, largest = high / scale;
            zero = 128.0f - least < 127.0f + largest ? -128.0f - least : 127.0f - largest;
            zero = zero < -128.0f ? -128.0f : zero > 127.0f ? 127.0f : roundf(zero);
            scales[0] = scale;
            factor = 1.0f / scale;
        }
        scales[1] = zero;
        for (int32_t i = 0; i < width; ++i) {
            const float steps = roundf(zero + in[i] * factor);
            out[i] = (int8_t)(steps > LOWEST.0f ? (steps < 127.0f ? steps : 127.0f) : LOWEST.0f);
        }
    }
}
