#include "cmsis_nn.h"

/* Softmax of rows of bytes by CMSIS-NN. */
typedef struct {
    int32_t rows, width, factor, shift, least;
} cmsis_softmax;

CMSIS_NN cmsis_softmax_s8(const cmsis_softmax *k, const uint8_t *in, uint8_t *out)
{
    arm_softmax_s8((const int8_t *)in, k->rows, k->width, k->factor, k->shift, k->least,
                   (int8_t *)out);
    return ARM_CMSIS_NN_SUCCESS;
}
