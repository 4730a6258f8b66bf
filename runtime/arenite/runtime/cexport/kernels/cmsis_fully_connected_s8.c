#include "cmsis_nn.h"

/* A product of bytes with a matrix by CMSIS-NN, which takes sums of the weights in its working
   memory where it computes in vectors. */
typedef struct {
    cmsis_nn_fc_params params;
    cmsis_nn_dims in_dims, filter_dims, bias_dims, out_dims;
    const int8_t *filter;
    const int32_t *bias;
    const int32_t *factors;
    const int32_t *shifts;
    int32_t is_per_channel, buffer_bytes;
} cmsis_fully_connected;

CMSIS_NN cmsis_fully_connected_s8(const cmsis_fully_connected *k, const uint8_t *in, uint8_t *out,
                                  uint8_t *buffer)
{
    const cmsis_nn_context context = {buffer, k->buffer_bytes};
    const cmsis_nn_quant_params scales = {(int32_t *)(uintptr_t)k->factors,
                                          (int32_t *)(uintptr_t)k->shifts, k->is_per_channel};
#if PLANNED_FOR_MVE
    arm_vector_sum_s8((int32_t *)(void *)buffer, k->filter_dims.n, k->out_dims.c, k->filter,
                      k->params.input_offset, k->params.filter_offset, k->bias);
#endif
    return arm_fully_connected_wrapper_s8(&context, &k->params, &scales, &k->in_dims,
                                          (const int8_t *)in, &k->filter_dims, k->filter,
                                          &k->bias_dims, k->bias, &k->out_dims, (int8_t *)out);
}
