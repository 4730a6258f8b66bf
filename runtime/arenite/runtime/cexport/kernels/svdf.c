#include "common.h"

/* One for each of
   THE_KERNEL | THE_LAYER       | STORED   | NUMBER
   svdf_f32   | svdf_layer_f32  | float    | (float)
   svdf_f16   | svdf_layer_f16  | uint16_t | half_of
   svdf_bf16  | svdf_layer_bf16 | uint16_t | upper_of */

/* Filters over features and then over their past; `rank` filters make a result. */
typedef struct {
    int32_t inputs, filters, memory, rank;
    float low, high;
    const STORED *features;
    const STORED *times;
    const float *bias;
} THE_LAYER;

/* One sequence of a batch. The state is the past of each filter, oldest first. */
KERNEL THE_KERNEL(const THE_LAYER *k, const float *in, float *state, float *out)
{
    for (int32_t filter = 0; filter < k->filters; ++filter) {
        const STORED *weights = k->features + filter * k->inputs;
        float *past = state + filter * k->memory, sum = 0.0f;
        for (int32_t i = 0; i < k->inputs; ++i)
            sum += NUMBER(weights[i]) * in[i];
        for (int32_t i = 1; i < k->memory; ++i)
            past[i - 1] = past[i];
        past[k->memory - 1] = sum;
    }
    for (int32_t unit = 0; unit < k->filters / k->rank; ++unit) {
        const int32_t first = unit * k->rank * k->memory;
        float sum = k->bias[unit];
        for (int32_t i = 0; i < k->rank * k->memory; ++i)
            sum += state[first + i] * NUMBER(k->times[first + i]);
        out[unit] = clamped_f32(sum, k->low, k->high);
    }
}

/* One for each of
   THE_KERNEL | THE_LAYER      | STATE   | LOWEST | HIGHEST
   svdf_s8    | svdf_layer_s8  | int8_t  | -128   | 127
   svdf_s16   | svdf_layer_s16 | int16_t | -32768 | 32767 */

/* Filters over features and then over their past; `rank` filters make a result. */
typedef struct {
    int32_t inputs, filters, memory, rank;
    int32_t in_zero, feature_factor, feature_shift, state_zero;
    int32_t factor, shift, out_zero, low, high;
    const int8_t *features;
    const STATE *times;
    const int32_t *bias;
} THE_LAYER;

/* One sequence of a batch. The state is the past of each filter, oldest first. */
KERNEL THE_KERNEL(const THE_LAYER *k, const int8_t *in, STATE *state, int8_t *out)
{
    for (int32_t filter = 0; filter < k->filters; ++filter) {
        const int8_t *weights = k->features + filter * k->inputs;
        STATE *past = state + filter * k->memory;
        int32_t sum = 0;
        for (int32_t i = 0; i < k->inputs; ++i)
            sum += weights[i] * (in[i] - k->in_zero);
        for (int32_t i = 1; i < k->memory; ++i)
            past[i - 1] = past[i];
        sum = requantised(sum, k->feature_factor, k->feature_shift);
        /* The reference kernel clamps before it adds: a sum out of range wraps. */
        past[k->memory - 1] = (STATE)(clamped(sum, LOWEST, HIGHEST) + k->state_zero);
    }
    for (int32_t unit = 0; unit < k->filters / k->rank; ++unit) {
        int32_t sum = k->bias[unit];
        for (int32_t i = 0; i < k->rank * k->memory; ++i)
            sum += state[unit * k->rank * k->memory + i] * k->times[unit * k->rank * k->memory + i];
        sum = requantised(sum, k->factor, k->shift) + k->out_zero;
        out[unit] = (int8_t)clamped(sum, k->low, k->high);
    }
}
