#include "common.h"

/* Where the elements of a product of matrices lie, in two batches; steps in elements, 0 where one
   matrix serves a whole batch. */
typedef struct {
    int32_t batches, matrices, rows, columns, depth;
    int32_t batch_a, matrix_a, row_a, step_a, batch_b, matrix_b, column_b, step_b;
} matmul_layer_f32;

/* The same of bytes: a term for each column, or NULL, and how sums become results. */
typedef struct {
    int32_t batches, matrices, rows, columns, depth;
    int32_t batch_a, matrix_a, row_a, step_a, batch_b, matrix_b, column_b, step_b;
    int32_t offset_a, offset_b, factor, shift, out_zero, low, high;
    const int32_t *bias;
} matmul_layer;

static inline int32_t product_sum(const matmul_layer *k, const int8_t *a, const int8_t *b,
                                  int32_t column)
{
    int32_t sum = k->bias != NULL ? k->bias[column] : 0;
    for (int32_t i = 0; i < k->depth; ++i, a += k->step_a, b += k->step_b)
        sum += (*a + k->offset_a) * (*b + k->offset_b);
    return clamped(requantised(sum, k->factor, k->shift) + k->out_zero, k->low, k->high);
}

static inline float product_sum_f32(const matmul_layer_f32 *k, const float *a, const float *b,
                                    int32_t column)
{
    (void)column;
    float sum = 0.0f;
    for (int32_t i = 0; i < k->depth; ++i, a += k->step_a, b += k->step_b)
        sum += *a * *b;
    return sum;
}

/* One for each of
   THE_KERNEL | THE_LAYER        | AN_ELEMENT | PRODUCT_SUM
   matmul_f32 | matmul_layer_f32 | float      | product_sum_f32
   matmul_s8  | matmul_layer     | int8_t     | product_sum */

/* Products of matrices, row by row. */
KERNEL THE_KERNEL(const THE_LAYER *k, const uint8_t *one, const uint8_t *other, uint8_t *out)
{
    AN_ELEMENT *to = (AN_ELEMENT *)(void *)out;
    for (int32_t batch = 0; batch < k->batches; ++batch)
        for (int32_t matrix = 0; matrix < k->matrices; ++matrix) {
            const AN_ELEMENT *a = (const AN_ELEMENT *)(const void *)one;
            const AN_ELEMENT *b = (const AN_ELEMENT *)(const void *)other;
            a += batch * k->batch_a + matrix * k->matrix_a;
            b += batch * k->batch_b + matrix * k->matrix_b;
            for (int32_t y = 0; y < k->rows; ++y, a += k->row_a)
                for (int32_t x = 0; x < k->columns; ++x)
                    *to++ = (AN_ELEMENT)PRODUCT_SUM(k, a, b + x * k->column_b, x);
        }
}
