#include "kernel.h"
#include "clamp_f32.h"

/* A long short-term memory; gates are input, forget, cell, output. Strides in floats. */
typedef struct {
    int32_t inputs, units;
    float clip;
    const float *weights;
    const float *recurrent;
    const float *bias;
} lstm_layer_f32;

static inline float sigmoid_of(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

static float gate_f32(const lstm_layer_f32 *k, int32_t row, const float *in, const float *hidden)
{
    const float *w = k->weights + row * k->inputs, *r = k->recurrent + row * k->units;
    float sum = k->bias[row];
    for (int32_t i = 0; i < k->inputs; ++i)
        sum += w[i] * in[i];
    for (int32_t i = 0; i < k->units; ++i)
        sum += r[i] * hidden[i];
    return sum;
}

/* `times` steps of one sequence of a batch; the states are updated. */
KERNEL lstm_f32(const lstm_layer_f32 *k, const float *in, int32_t in_stride, int32_t times,
                float *hidden, float *cell, float *out, int32_t out_stride)
{
    for (int32_t t = 0; t < times; ++t, in += in_stride, out += out_stride) {
        for (int32_t j = 0; j < k->units; ++j) {
            const float input = sigmoid_of(gate_f32(k, j, in, hidden));
            const float forget = sigmoid_of(gate_f32(k, k->units + j, in, hidden));
            const float change = tanhf(gate_f32(k, 2 * k->units + j, in, hidden));
            const float shown = sigmoid_of(gate_f32(k, 3 * k->units + j, in, hidden));
            cell[j] = clamped_f32(forget * cell[j] + input * change, -k->clip, k->clip);
            out[j] = shown * tanhf(cell[j]);
        }
        /* Only now: all units read the state from before. */
        for (int32_t j = 0; j < k->units; ++j)
            hidden[j] = out[j];
    }
}
