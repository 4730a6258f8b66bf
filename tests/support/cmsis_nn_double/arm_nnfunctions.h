// What exported source calls of CMSIS-NN, for tests on machines that do not have it. Written for
// Arenite after the interface of CMSIS-NN 7.0.0; the functions are plain loops, and stricter: what
// they are handed may not overlap, and working memory and result are overwritten with noise first.
#ifndef ARM_NNFUNCTIONS_H
#define ARM_NNFUNCTIONS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  ARM_CMSIS_NN_SUCCESS = 0,
  ARM_CMSIS_NN_ARG_ERROR = -1,
} arm_cmsis_nn_status;

typedef struct {
  int32_t w, h;
} cmsis_nn_tile;

typedef struct {
  void* buf;
  int32_t size;
} cmsis_nn_context;

typedef struct {
  int32_t n, h, w, c;
} cmsis_nn_dims;

typedef struct {
  int32_t *multiplier, *shift;
} cmsis_nn_per_channel_quant_params;

typedef struct {
  int32_t *multiplier, *shift;
  int32_t is_per_channel;
} cmsis_nn_quant_params;

typedef struct {
  int32_t min, max;
} cmsis_nn_activation;

typedef struct {
  int32_t input_offset, output_offset;
  cmsis_nn_tile stride, padding, dilation;
  cmsis_nn_activation activation;
} cmsis_nn_conv_params;

typedef struct {
  int32_t input_offset, output_offset, ch_mult;
  cmsis_nn_tile stride, padding, dilation;
  cmsis_nn_activation activation;
} cmsis_nn_dw_conv_params;

typedef struct {
  cmsis_nn_tile stride, padding;
  cmsis_nn_activation activation;
} cmsis_nn_pool_params;

typedef struct {
  int32_t input_offset, filter_offset, output_offset;
  cmsis_nn_activation activation;
} cmsis_nn_fc_params;

arm_cmsis_nn_status arm_convolve_wrapper_s8(const cmsis_nn_context* ctx,
                                            const cmsis_nn_conv_params* params,
                                            const cmsis_nn_per_channel_quant_params* scales,
                                            const cmsis_nn_dims* in_dims, const int8_t* in,
                                            const cmsis_nn_dims* filter_dims, const int8_t* filter,
                                            const cmsis_nn_dims* bias_dims, const int32_t* bias,
                                            const cmsis_nn_dims* out_dims, int8_t* out);

arm_cmsis_nn_status arm_depthwise_conv_wrapper_s8(
    const cmsis_nn_context* ctx, const cmsis_nn_dw_conv_params* params,
    const cmsis_nn_per_channel_quant_params* scales, const cmsis_nn_dims* in_dims, const int8_t* in,
    const cmsis_nn_dims* filter_dims, const int8_t* filter, const cmsis_nn_dims* bias_dims,
    const int32_t* bias, const cmsis_nn_dims* out_dims, int8_t* out);

arm_cmsis_nn_status arm_vector_sum_s8(int32_t* sums, int32_t columns, int32_t rows,
                                      const int8_t* matrix, int32_t in_offset,
                                      int32_t filter_offset, const int32_t* bias);

arm_cmsis_nn_status arm_fully_connected_wrapper_s8(
    const cmsis_nn_context* ctx, const cmsis_nn_fc_params* params,
    const cmsis_nn_quant_params* scales, const cmsis_nn_dims* in_dims, const int8_t* in,
    const cmsis_nn_dims* filter_dims, const int8_t* filter, const cmsis_nn_dims* bias_dims,
    const int32_t* bias, const cmsis_nn_dims* out_dims, int8_t* out);

arm_cmsis_nn_status arm_avgpool_s8(const cmsis_nn_context* ctx, const cmsis_nn_pool_params* params,
                                   const cmsis_nn_dims* in_dims, const int8_t* in,
                                   const cmsis_nn_dims* window_dims, const cmsis_nn_dims* out_dims,
                                   int8_t* out);

arm_cmsis_nn_status arm_max_pool_s8(const cmsis_nn_context* ctx, const cmsis_nn_pool_params* params,
                                    const cmsis_nn_dims* in_dims, const int8_t* in,
                                    const cmsis_nn_dims* window_dims, const cmsis_nn_dims* out_dims,
                                    int8_t* out);

arm_cmsis_nn_status arm_elementwise_add_s8(const int8_t* one, const int8_t* other, int32_t offset_1,
                                           int32_t factor_1, int32_t shift_1, int32_t offset_2,
                                           int32_t factor_2, int32_t shift_2, int32_t left_shift,
                                           int8_t* out, int32_t out_offset, int32_t factor,
                                           int32_t shift, int32_t low, int32_t high, int32_t count);

arm_cmsis_nn_status arm_elementwise_mul_s8(const int8_t* one, const int8_t* other, int32_t offset_1,
                                           int32_t offset_2, int8_t* out, int32_t out_offset,
                                           int32_t factor, int32_t shift, int32_t low, int32_t high,
                                           int32_t count);

void arm_softmax_s8(const int8_t* in, int32_t rows, int32_t width, int32_t factor, int32_t shift,
                    int32_t least, int8_t* out);

#ifdef __cplusplus
}
#endif

#endif  // ARM_NNFUNCTIONS_H
