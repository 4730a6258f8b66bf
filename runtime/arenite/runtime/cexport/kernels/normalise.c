#include "common.h"
#include "softmax_s8.h"

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

/* One for each of
   THE_KERNEL      | THE_LAYER          | WRITE_ROW
   softmax_s8      | softmax_layer      | softmax_row_s8
   softmax_even_s8 | softmax_even_layer | softmax_row_even_s8 */

/* Softmax of rows [first, end) of bytes. */
KERNEL THE_KERNEL(const THE_LAYER *k, in_rows in, out_rows out, int32_t first, int32_t end)
{
    for (int32_t y = first; y < end; ++y)
        WRITE_ROW(k, (const int8_t *)in_row(in, y), (int8_t *)out_row(out, y));
}
