#include "cmsis_nn.h"

/* One for each of
   THE_KERNEL         | THE_LAYER       | THE_PARAMS              | THE_FUNCTION
   cmsis_conv_s8      | cmsis_conv      | cmsis_nn_conv_params    | arm_convolve_wrapper_s8
   cmsis_depthwise_s8 | cmsis_depthwise | cmsis_nn_dw_conv_params | arm_depthwise_conv_wrapper_s8 */

/* A convolution of bytes by CMSIS-NN. */
typedef struct {
    THE_PARAMS params;
    cmsis_nn_dims in_dims, filter_dims, bias_dims, out_dims;
    const int8_t *filter;
    const int32_t *bias;
    const int32_t *factors;
    const int32_t *shifts;
    int32_t buffer_bytes;
} THE_LAYER;

CMSIS_NN THE_KERNEL(const THE_LAYER *k, const uint8_t *in, uint8_t *out, uint8_t *buffer)
{
    const cmsis_nn_context context = {buffer, k->buffer_bytes};
    const cmsis_nn_per_channel_quant_params channels = {(int32_t *)(uintptr_t)k->factors,
                                                        (int32_t *)(uintptr_t)k->shifts};
    return THE_FUNCTION(&context, &k->params, &channels, &k->in_dims, (const int8_t *)in,
                        &k->filter_dims, k->filter, &k->bias_dims, k->bias, &k->out_dims,
                        (int8_t *)out);
}
