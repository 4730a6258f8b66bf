#include "kernel.h"
#include "requantise.h"

/* Filters over features and then over their past; `rank` filters make a result. */
typedef struct {
    int32_t inputs, filters, memory, rank;
    int32_t in_zero, feature_factor, feature_shift, factor, shift, out_zero, low, high;
    const int8_t *features;
    const int8_t *times;
    const int32_t *bias;
} svdf_layer_s8;

/* One sequence of a batch. The state is the past of each filter, oldest first. */
KERNEL svdf_s8(const svdf_layer_s8 *k, const int8_t *in, int8_t *state, int8_t *out)
{
    for (int32_t filter = 0; filter < k->filters; ++filter) {
        const int8_t *weights = k->features + filter * k->inputs;
        int8_t *past = state + filter * k->memory;
        int32_t sum = 0;
        for (int32_t i = 0; i < k->inputs; ++i)
            sum += weights[i] * (in[i] - k->in_zero);
        for (int32_t i = 1; i < k->memory; ++i)
            past[i - 1] = past[i];
        sum = requantised(sum, k->feature_factor, k->feature_shift);
        past[k->memory - 1] = (int8_t)clamped(sum, -128, 127);
    }
    for (int32_t unit = 0; unit < k->filters / k->rank; ++unit) {
        int32_t sum = k->bias[unit];
        for (int32_t i = 0; i < k->rank * k->memory; ++i)
            sum += state[unit * k->rank * k->memory + i] * k->times[unit * k->rank * k->memory + i];
        sum = requantised(sum, k->factor, k->shift) + k->out_zero;
        out[unit] = (int8_t)clamped(sum, k->low, k->high);
    }
}
