#include "kernel.h"
#include "clamp_f32.h"

/* Filters over features and then over their past; `rank` filters make a result. */
typedef struct {
    int32_t inputs, filters, memory, rank;
    float low, high;
    const float *features;
    const float *times;
    const float *bias;
} svdf_layer_f32;

/* One sequence of a batch. The state is the past of each filter, oldest first. */
KERNEL svdf_f32(const svdf_layer_f32 *k, const float *in, float *state, float *out)
{
    for (int32_t filter = 0; filter < k->filters; ++filter) {
        const float *weights = k->features + filter * k->inputs;
        float *past = state + filter * k->memory, sum = 0.0f;
        for (int32_t i = 0; i < k->inputs; ++i)
            sum += weights[i] * in[i];
        for (int32_t i = 1; i < k->memory; ++i)
            past[i - 1] = past[i];
        past[k->memory - 1] = sum;
    }
    for (int32_t unit = 0; unit < k->filters / k->rank; ++unit) {
        const int32_t first = unit * k->rank * k->memory;
        float sum = k->bias[unit];
        for (int32_t i = 0; i < k->rank * k->memory; ++i)
            sum += state[first + i] * k->times[first + i];
        out[unit] = clamped_f32(sum, k->low, k->high);
    }
}
