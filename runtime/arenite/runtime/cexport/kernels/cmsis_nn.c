#include <arm_nnfunctions.h>

/* The working memory in the arena is that of one kind of processors. */
#if defined(ARM_MATH_MVEI)
#if !PLANNED_FOR_MVE
#error "CMSIS-NN is compiled for MVE: export the model with --extension mve"
#endif
#elif PLANNED_FOR_MVE
#error "the model was exported with --extension mve, and CMSIS-NN is compiled without"
#elif defined(ARM_MATH_DSP) && !PLANNED_FOR_DSP
#error "CMSIS-NN is compiled for DSP instructions: export the model with --extension dsp"
#endif
#if defined(CMSIS_NN_USE_SINGLE_ROUNDING)
#error "the model is rounded twice, and CMSIS-NN is compiled to round once"
#endif

/* Calls of CMSIS-NN are kept apart from what calls them, as kernels are. */
#if defined(__GNUC__)
#define CMSIS_NN static __attribute__((noinline)) arm_cmsis_nn_status
#else
#define CMSIS_NN static arm_cmsis_nn_status
#endif

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

/* A pool of bytes by CMSIS-NN. */
typedef struct {
    cmsis_nn_pool_params params;
    cmsis_nn_dims in_dims, window_dims, out_dims;
    int32_t buffer_bytes;
} cmsis_pool;

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

/* One for each of
   THE_KERNEL            | THE_FUNCTION
   cmsis_average_pool_s8 | arm_avgpool_s8
   cmsis_max_pool_s8     | arm_max_pool_s8 */

CMSIS_NN THE_KERNEL(const cmsis_pool *k, const uint8_t *in, uint8_t *out, uint8_t *buffer)
{
    const cmsis_nn_context context = {buffer, k->buffer_bytes};
    return THE_FUNCTION(&context, &k->params, &k->in_dims, (const int8_t *)in, &k->window_dims,
                        &k->out_dims, (int8_t *)out);
}
