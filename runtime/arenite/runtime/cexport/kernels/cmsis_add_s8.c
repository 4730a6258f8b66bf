#include "cmsis_nn.h"

/* A sum of two tensors of bytes by CMSIS-NN. */
typedef struct {
    int32_t count, offset_a, factor_a, shift_a, offset_b, factor_b, shift_b, left_shift;
    int32_t out_zero, factor, shift, low, high;
} cmsis_add;

CMSIS_NN cmsis_add_s8(const cmsis_add *k, const uint8_t *one, const uint8_t *other, uint8_t *out)
{
    return arm_elementwise_add_s8((const int8_t *)one, (const int8_t *)other, k->offset_a,
                                  k->factor_a, k->shift_a, k->offset_b, k->factor_b, k->shift_b,
                                  k->left_shift, (int8_t *)out, k->out_zero, k->factor, k->shift,
                                  k->low, k->high, k->count);
}
