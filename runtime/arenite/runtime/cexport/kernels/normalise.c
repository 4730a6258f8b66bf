#include "common.h"

/* Rows [first, end) of `width` floats less their mean, or as they are, over their deviation; then
   times factors, plus terms, each of which may be NULL. */
KERNEL layer_norm_f32(int32_t width, float epsilon, int32_t centres, const float *factors,
                      const float *terms, in_rows in, out_rows out, int32_t first, int32_t end)
{
    const float size = (float)width;
    for (int32_t y = first; y < end; ++y) {
        const float *from = (const float *)(const void *)in_row(in, y);
        float *to = (float *)(void *)out_row(out, y);
        float sum = 0.0f, squares = 0.0f;
        for (int32_t i = 0; i < width && centres; ++i)
            sum += from[i];
        const float mean = sum / size;
        for (int32_t i = 0; i < width; ++i)
            squares += (from[i] - mean) * (from[i] - mean);
        const float factor = 1.0f / sqrtf(squares / size + epsilon);
        for (int32_t i = 0; i < width; ++i) {
            const float value = (from[i] - mean) * factor;
            const float scaled = factors != NULL ? value * factors[i] : value;
            to[i] = terms != NULL ? scaled + terms[i] : scaled;
        }
    }
}

/* Rows [first, end) of `width` floats over their Euclidean norm, which is at least `epsilon`. */
KERNEL l2_norm_f32(int32_t width, float epsilon, in_rows in, out_rows out, int32_t first,
                   int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        const float *from = (const float *)(const void *)in_row(in, y);
        float *to = (float *)(void *)out_row(out, y);
        float squares = 0.0f;
        for (int32_t i = 0; i < width; ++i)
            squares += from[i] * from[i];
        const float length = fmaxf(sqrtf(squares), epsilon);
        const float factor = length > 0.0f ? 1.0f / length : 0.0f;
        for (int32_t i = 0; i < width; ++i)
            to[i] = from[i] * factor;
    }
}

/* Softmax of beta * x in rows of `width` floats; rows [first, end), each read before it is
   written. */
KERNEL softmax_f32(int32_t width, float beta, in_rows in, out_rows out, int32_t first, int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        const float *from = (const float *)(const void *)in_row(in, y);
        float *to = (float *)(void *)out_row(out, y);
        float most = from[0], sum = 0.0f;
        for (int32_t i = 1; i < width; ++i)
            most = from[i] > most ? from[i] : most;
        for (int32_t i = 0; i < width; ++i) {
            to[i] = expf((from[i] - most) * beta);
            sum += to[i];
        }
        for (int32_t i = 0; i < width; ++i)
            to[i] /= sum;
    }
}

/* Softmax of rows of `width` bytes. `exponentials` are those of differences from the largest,
   0 to 255, of 31 fractional bits; `least` is the largest difference that counts. */
typedef struct {
    int32_t width, least;
    const int32_t *exponentials;
} softmax_layer;

static inline int32_t high_product(int32_t one, int32_t other)
{
    return (int32_t)(((int64_t)one * other + (1 << 30)) >> 31);
}

/* value / 2^right, halves away from zero; `right` is at least 1. */
static inline int32_t halved(int32_t value, int32_t right)
{
    return right > 31 ? 0 : (int32_t)((value + ((int64_t)1 << (right - 1)) - (value < 0)) >> right);
}

/* 1 / (1 + fraction) of 31 fractional bits, by three steps of Newton's method. */
static int32_t reciprocal(int32_t fraction)
{
    const int32_t half = (int32_t)(((int64_t)fraction + 0x7fffffff + 1) / 2);
    int32_t x = 1515870810 + high_product(half, -1010580540);
    for (int32_t i = 0; i < 3; ++i) {
        const int32_t rest = (1 << 29) - high_product(half, x);
        x += high_product(x, rest) * 4;
    }
    return x >= 1 << 30 ? 0x7fffffff : x * 2;
}

/* Rows [first, end); each row is read before it is written. */
KERNEL softmax_s8(const softmax_layer *k, in_rows in, out_rows out, int32_t first, int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        const int8_t *from = (const int8_t *)in_row(in, y);
        int8_t *to = (int8_t *)out_row(out, y);
        int32_t most = -128, sum = 0, headroom = 0;
        for (int32_t i = 0; i < k->width; ++i)
            most = from[i] > most ? from[i] : most;
        for (int32_t i = 0; i < k->width; ++i)
            if (most - from[i] <= k->least)
                sum += halved(k->exponentials[most - from[i]], 12);
        while (((uint32_t)sum << headroom) < 0x80000000u)
            ++headroom;
        const int32_t scale = reciprocal((int32_t)(((uint32_t)sum << headroom) - 0x80000000u));
        for (int32_t i = 0; i < k->width; ++i) {
            int32_t value = -128;
            if (most - from[i] <= k->least) {
                const int32_t share = high_product(scale, k->exponentials[most - from[i]]);
                value += halved(share, 12 - headroom + 31 - 8);
            }
            to[i] = (int8_t)clamped(value, -128, 127);
        }
    }
}

/* Softmax of rows of `width` bytes, halves to the even integer. `exponentials` are those of
   differences from the largest, 0 to 255. */
typedef struct {
    int32_t width, out_zero;
    float out_scale;
    const float *exponentials;
} softmax_even_layer;

/* Rows [first, end); each row is read before it is written. */
KERNEL softmax_even_s8(const softmax_even_layer *k, in_rows in, out_rows out, int32_t first,
                       int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        const int8_t *from = (const int8_t *)in_row(in, y);
        int8_t *to = (int8_t *)out_row(out, y);
        int32_t most = -128;
        float sum = 0.0f;
        for (int32_t i = 0; i < k->width; ++i)
            most = from[i] > most ? from[i] : most;
        for (int32_t i = 0; i < k->width; ++i)
            sum += k->exponentials[most - from[i]];
        for (int32_t i = 0; i < k->width; ++i) {
            const float share = k->exponentials[most - from[i]] / sum;
            to[i] = (int8_t)clamped(nearest_even(share / k->out_scale) + k->out_zero, -128, 127);
        }
    }
}
