#include "cmsis_nn.h"

/* A product of two tensors of bytes by CMSIS-NN. */
typedef struct {
    int32_t count, offset_a, offset_b, out_zero, factor, shift, low, high;
} cmsis_multiply;

CMSIS_NN cmsis_multiply_s8(const cmsis_multiply *k, const uint8_t *one, const uint8_t *other,
                           uint8_t *out)
{
    return arm_elementwise_mul_s8((const int8_t *)one, (const int8_t *)other, k->offset_a,
                                  k->offset_b, (int8_t *)out, k->out_zero, k->factor, k->shift,
                                  k->low, k->high, k->count);
}
