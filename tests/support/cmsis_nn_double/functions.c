// The functions of the double, as TensorFlow Lite Micro's reference kernels compute them.
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "arm_nnfunctions.h"

static int are_apart(const void* one, size_t length, const void* other, size_t other_length) {
  const uintptr_t a = (uintptr_t)one, b = (uintptr_t)other;
  return a + length <= b || b + other_length <= a;
}

static size_t volume(const cmsis_nn_dims* dims) {
  return (size_t)dims->n * (size_t)dims->h * (size_t)dims->w * (size_t)dims->c;
}

// Tells whether operand, result and working memory lie apart; result and, unless it holds sums
// already, working memory are noise afterwards.
static int is_clean(const cmsis_nn_context* ctx, const int8_t* in, size_t in_size, int8_t* out,
                    size_t out_size, int has_sums) {
  if (!are_apart(in, in_size, out, out_size)) return 0;
  memset(out, 0x5a, out_size);
  if (ctx == NULL || ctx->size == 0) return 1;
  const size_t size = (size_t)ctx->size;
  if (!are_apart(in, in_size, ctx->buf, size) || !are_apart(out, out_size, ctx->buf, size))
    return 0;
  if (!has_sums) memset(ctx->buf, 0xa5, size);
  return 1;
}

static int32_t clamped(int32_t value, int32_t low, int32_t high) {
  return value < low ? low : value > high ? high : value;
}

static int32_t high_product(int32_t one, int32_t other) {
  return (int32_t)(((int64_t)one * other + (1 << 30)) >> 31);
}

static int32_t halved(int32_t value, int32_t right) {
  if (right == 0) return value;
  return (int32_t)((value + ((int64_t)1 << (right - 1)) - (value < 0)) >> right);
}

static int32_t requantised(int32_t value, int32_t factor, int32_t shift) {
  const int32_t shifted = value * (1 << (shift > 0 ? shift : 0));
  return halved(high_product(shifted, factor), shift < 0 ? -shift : 0);
}

arm_cmsis_nn_status arm_convolve_wrapper_s8(const cmsis_nn_context* ctx,
                                            const cmsis_nn_conv_params* params,
                                            const cmsis_nn_per_channel_quant_params* scales,
                                            const cmsis_nn_dims* in_dims, const int8_t* in,
                                            const cmsis_nn_dims* filter_dims, const int8_t* filter,
                                            const cmsis_nn_dims* bias_dims, const int32_t* bias,
                                            const cmsis_nn_dims* out_dims, int8_t* out) {
  if (!is_clean(ctx, in, volume(in_dims), out, volume(out_dims), 0)) return ARM_CMSIS_NN_ARG_ERROR;
  if (bias_dims->c != out_dims->c || filter_dims->n != out_dims->c) return ARM_CMSIS_NN_ARG_ERROR;
  const int32_t per_group = out_dims->c / (in_dims->c / filter_dims->c);
  for (int32_t n = 0; n < out_dims->n; ++n)
    for (int32_t y = 0; y < out_dims->h; ++y)
      for (int32_t x = 0; x < out_dims->w; ++x)
        for (int32_t c = 0; c < out_dims->c; ++c) {
          int32_t sum = bias[c];
          for (int32_t i = 0; i < filter_dims->h; ++i)
            for (int32_t j = 0; j < filter_dims->w; ++j) {
              const int32_t row = y * params->stride.h - params->padding.h + i * params->dilation.h;
              const int32_t column =
                  x * params->stride.w - params->padding.w + j * params->dilation.w;
              if (row < 0 || row >= in_dims->h || column < 0 || column >= in_dims->w) continue;
              const int8_t* from = in +
                                   ((n * in_dims->h + row) * in_dims->w + column) * in_dims->c +
                                   c / per_group * filter_dims->c;
              const int8_t* by =
                  filter + ((c * filter_dims->h + i) * filter_dims->w + j) * filter_dims->c;
              for (int32_t k = 0; k < filter_dims->c; ++k)
                sum += (from[k] + params->input_offset) * by[k];
            }
          const int32_t value = requantised(sum, scales->multiplier[c], scales->shift[c]);
          *out++ = (int8_t)clamped(value + params->output_offset, params->activation.min,
                                   params->activation.max);
        }
  return ARM_CMSIS_NN_SUCCESS;
}

arm_cmsis_nn_status arm_depthwise_conv_wrapper_s8(
    const cmsis_nn_context* ctx, const cmsis_nn_dw_conv_params* params,
    const cmsis_nn_per_channel_quant_params* scales, const cmsis_nn_dims* in_dims, const int8_t* in,
    const cmsis_nn_dims* filter_dims, const int8_t* filter, const cmsis_nn_dims* bias_dims,
    const int32_t* bias, const cmsis_nn_dims* out_dims, int8_t* out) {
  if (!is_clean(ctx, in, volume(in_dims), out, volume(out_dims), 0)) return ARM_CMSIS_NN_ARG_ERROR;
  if (in_dims->c * params->ch_mult != out_dims->c || filter_dims->c != out_dims->c ||
      bias_dims->c != out_dims->c)
    return ARM_CMSIS_NN_ARG_ERROR;
  for (int32_t n = 0; n < out_dims->n; ++n)
    for (int32_t y = 0; y < out_dims->h; ++y)
      for (int32_t x = 0; x < out_dims->w; ++x)
        for (int32_t c = 0; c < out_dims->c; ++c) {
          int32_t sum = bias[c];
          for (int32_t i = 0; i < filter_dims->h; ++i)
            for (int32_t j = 0; j < filter_dims->w; ++j) {
              const int32_t row = y * params->stride.h - params->padding.h + i * params->dilation.h;
              const int32_t column =
                  x * params->stride.w - params->padding.w + j * params->dilation.w;
              if (row < 0 || row >= in_dims->h || column < 0 || column >= in_dims->w) continue;
              const int8_t from = in[((n * in_dims->h + row) * in_dims->w + column) * in_dims->c +
                                     c / params->ch_mult];
              sum += (from + params->input_offset) *
                     filter[(i * filter_dims->w + j) * filter_dims->c + c];
            }
          const int32_t value = requantised(sum, scales->multiplier[c], scales->shift[c]);
          *out++ = (int8_t)clamped(value + params->output_offset, params->activation.min,
                                   params->activation.max);
        }
  return ARM_CMSIS_NN_SUCCESS;
}

arm_cmsis_nn_status arm_vector_sum_s8(int32_t* sums, int32_t columns, int32_t rows,
                                      const int8_t* matrix, int32_t in_offset,
                                      int32_t filter_offset, const int32_t* bias) {
  for (int32_t row = 0; row < rows; ++row) {
    int32_t sum = 0;
    for (int32_t i = 0; i < columns; ++i) sum += *matrix++ + filter_offset;
    sums[row] = bias[row] + sum * in_offset;
  }
  return ARM_CMSIS_NN_SUCCESS;
}

arm_cmsis_nn_status arm_fully_connected_wrapper_s8(
    const cmsis_nn_context* ctx, const cmsis_nn_fc_params* params,
    const cmsis_nn_quant_params* scales, const cmsis_nn_dims* in_dims, const int8_t* in,
    const cmsis_nn_dims* filter_dims, const int8_t* filter, const cmsis_nn_dims* bias_dims,
    const int32_t* bias, const cmsis_nn_dims* out_dims, int8_t* out) {
#if defined(ARM_MATH_MVEI)
  const int has_sums = 1;
#else
  const int has_sums = 0;
#endif
  const int32_t depth = filter_dims->n, outputs = out_dims->c;
  if (!is_clean(ctx, in, volume(in_dims), out, volume(out_dims), has_sums))
    return ARM_CMSIS_NN_ARG_ERROR;
  if (in_dims->c != depth || filter_dims->c != outputs || bias_dims->c != outputs)
    return ARM_CMSIS_NN_ARG_ERROR;
  if (has_sums && ctx->size != 4 * outputs) return ARM_CMSIS_NN_ARG_ERROR;
  for (int32_t n = 0; n < in_dims->n; ++n, in += depth)
    for (int32_t c = 0; c < outputs; ++c) {
      const int32_t offset = has_sums ? 0 : params->input_offset;
      int32_t sum = has_sums ? ((const int32_t*)ctx->buf)[c] : bias[c];
      for (int32_t i = 0; i < depth; ++i)
        sum += (in[i] + offset) * (filter[c * depth + i] + params->filter_offset);
      const int32_t scale = scales->is_per_channel ? c : 0;
      const int32_t value = requantised(sum, scales->multiplier[scale], scales->shift[scale]);
      *out++ = (int8_t)clamped(value + params->output_offset, params->activation.min,
                               params->activation.max);
    }
  return ARM_CMSIS_NN_SUCCESS;
}

static arm_cmsis_nn_status pooled(const cmsis_nn_context* ctx, const cmsis_nn_pool_params* params,
                                  const cmsis_nn_dims* in_dims, const int8_t* in,
                                  const cmsis_nn_dims* window_dims, const cmsis_nn_dims* out_dims,
                                  int8_t* out, int is_average) {
  if (!is_clean(ctx, in, volume(in_dims), out, volume(out_dims), 0)) return ARM_CMSIS_NN_ARG_ERROR;
  for (int32_t n = 0; n < out_dims->n; ++n)
    for (int32_t y = 0; y < out_dims->h; ++y)
      for (int32_t x = 0; x < out_dims->w; ++x)
        for (int32_t c = 0; c < out_dims->c; ++c) {
          int32_t sum = 0, count = 0, most = -128;
          for (int32_t i = 0; i < window_dims->h; ++i)
            for (int32_t j = 0; j < window_dims->w; ++j) {
              const int32_t row = y * params->stride.h - params->padding.h + i;
              const int32_t column = x * params->stride.w - params->padding.w + j;
              if (row < 0 || row >= in_dims->h || column < 0 || column >= in_dims->w) continue;
              const int32_t value =
                  in[((n * in_dims->h + row) * in_dims->w + column) * in_dims->c + c];
              sum += value;
              ++count;
              most = value > most ? value : most;
            }
          const int32_t half = sum > 0 ? count / 2 : -(count / 2);
          *out++ = (int8_t)clamped(is_average ? (sum + half) / count : most, params->activation.min,
                                   params->activation.max);
        }
  return ARM_CMSIS_NN_SUCCESS;
}

arm_cmsis_nn_status arm_avgpool_s8(const cmsis_nn_context* ctx, const cmsis_nn_pool_params* params,
                                   const cmsis_nn_dims* in_dims, const int8_t* in,
                                   const cmsis_nn_dims* window_dims, const cmsis_nn_dims* out_dims,
                                   int8_t* out) {
  return pooled(ctx, params, in_dims, in, window_dims, out_dims, out, 1);
}

arm_cmsis_nn_status arm_max_pool_s8(const cmsis_nn_context* ctx, const cmsis_nn_pool_params* params,
                                    const cmsis_nn_dims* in_dims, const int8_t* in,
                                    const cmsis_nn_dims* window_dims, const cmsis_nn_dims* out_dims,
                                    int8_t* out) {
  return pooled(ctx, params, in_dims, in, window_dims, out_dims, out, 0);
}

arm_cmsis_nn_status arm_elementwise_add_s8(const int8_t* one, const int8_t* other, int32_t offset_1,
                                           int32_t factor_1, int32_t shift_1, int32_t offset_2,
                                           int32_t factor_2, int32_t shift_2, int32_t left_shift,
                                           int8_t* out, int32_t out_offset, int32_t factor,
                                           int32_t shift, int32_t low, int32_t high,
                                           int32_t count) {
  const size_t size = (size_t)count;
  if (!is_clean(NULL, one, size, out, size, 0) || !are_apart(other, size, out, size))
    return ARM_CMSIS_NN_ARG_ERROR;
  for (int32_t i = 0; i < count; ++i) {
    const int32_t x = (one[i] + offset_1) * (1 << left_shift);
    const int32_t z = (other[i] + offset_2) * (1 << left_shift);
    const int32_t sum = requantised(x, factor_1, shift_1) + requantised(z, factor_2, shift_2);
    out[i] = (int8_t)clamped(requantised(sum, factor, shift) + out_offset, low, high);
  }
  return ARM_CMSIS_NN_SUCCESS;
}

arm_cmsis_nn_status arm_elementwise_mul_s8(const int8_t* one, const int8_t* other, int32_t offset_1,
                                           int32_t offset_2, int8_t* out, int32_t out_offset,
                                           int32_t factor, int32_t shift, int32_t low, int32_t high,
                                           int32_t count) {
  const size_t size = (size_t)count;
  if (!is_clean(NULL, one, size, out, size, 0) || !are_apart(other, size, out, size))
    return ARM_CMSIS_NN_ARG_ERROR;
  for (int32_t i = 0; i < count; ++i) {
    const int32_t product = (one[i] + offset_1) * (other[i] + offset_2);
    out[i] = (int8_t)clamped(requantised(product, factor, shift) + out_offset, low, high);
  }
  return ARM_CMSIS_NN_SUCCESS;
}

// exp of a number of 26 fractional bits that is not positive, with 31 fractional bits; after
// gemmlowp's fixedpoint.h.
static int32_t exponential(int32_t value) {
  static const int32_t factors[] = {1672461947, 1302514674, 790015084, 290630308,
                                    39332535,   720401,     242};
  if (value == 0) return INT32_MAX;
  const int32_t quarter = 1 << 24, remainder = (value & (quarter - 1)) - quarter;
  const int32_t x = remainder * 32 + (1 << 28);
  const int32_t x2 = high_product(x, x), x3 = high_product(x2, x), x4 = high_product(x2, x2);
  const int32_t rest = halved(high_product(halved(x4, 2) + x3, 715827883) + x2, 1);
  int32_t found = 1895147668 + high_product(1895147668, x + rest);
  for (int32_t i = 0; i < 7; ++i)
    if ((remainder - value) & (1 << (24 + i))) found = high_product(found, factors[i]);
  return found;
}

void arm_softmax_s8(const int8_t* in, int32_t rows, int32_t width, int32_t factor, int32_t shift,
                    int32_t least, int8_t* out) {
  const size_t size = (size_t)(rows * width);
  if (!is_clean(NULL, in, size, out, size, 0)) abort();
  for (int32_t row = 0; row < rows; ++row, in += width, out += width) {
    int32_t most = -128, sum = 0, headroom = 0;
    for (int32_t i = 0; i < width; ++i) most = in[i] > most ? in[i] : most;
    for (int32_t i = 0; i < width; ++i)
      if (in[i] - most >= least)
        sum += halved(exponential(requantised(in[i] - most, factor, shift)), 12);
    while (((uint32_t)sum << headroom) < 0x80000000u) ++headroom;
    const int32_t fraction = (int32_t)(((uint32_t)sum << headroom) - 0x80000000u);
    const int32_t half = (int32_t)(((int64_t)fraction + INT32_MAX + 1) / 2);
    int32_t x = 1515870810 + high_product(half, -1010580540);
    for (int32_t i = 0; i < 3; ++i) x += high_product(x, (1 << 29) - high_product(half, x)) * 4;
    const int32_t scale = x >= 1 << 30 ? INT32_MAX : x * 2;
    for (int32_t i = 0; i < width; ++i) {
      out[i] = -128;
      if (in[i] - most < least) continue;
      const int32_t share = exponential(requantised(in[i] - most, factor, shift));
      const int32_t value = halved(high_product(scale, share), 12 - headroom + 31 - 8) - 128;
      out[i] = (int8_t)clamped(value, -128, 127);
    }
  }
}
