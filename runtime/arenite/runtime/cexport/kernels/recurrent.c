#include "common.h"
#include "logistic_s16.h"

static inline float logistic_f32(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

static inline int16_t saturated16(int32_t x)
{
    return (int16_t)(x < -32768 ? -32768 : x > 32767 ? 32767 : x);
}

/* Three times a number with `bits` before the point, as one of 12 bits behind it. */
static inline int32_t thirds_of(int16_t a, int32_t bits)
{
    const int32_t left = bits > 3 ? bits - 3 : 0, right = left - (bits - 3);
    return (a * (3 << left) + ((1 << right) >> 1)) >> right;
}

/* A product of numbers, over 2^right; `right` is at least 1. */
static inline int16_t times16(int32_t a, int32_t b, int32_t right)
{
    return saturated16(requantised(a * b, 1 << 30, 1 - right));
}

/* A long short-term memory: 8 bits outside, gates and cells of 16. Gates are input, forget, cell,
   output; each row of them begins with a sum, its bias and what zero points add to it. */
typedef struct {
    int32_t inputs, units, cell_bits, clip, hidden_factor, hidden_shift, hidden_zero;
    const int8_t *weights;
    const int8_t *recurrent;
    const int32_t *begins;
    const int32_t *recurrent_begins;
    const int32_t *factors;
    const int32_t *recurrent_factors;
    const int8_t *shifts;
    const int8_t *recurrent_shifts;
    const uint16_t *logistic;
} lstm_layer;

static int32_t row_of_products(int32_t sum, const int8_t *values, const int8_t *weights,
                               int32_t count)
{
    for (int32_t i = 0; i < count; ++i)
        sum += values[i] * weights[i];
    return sum;
}

/* The sum of a gate, with 3 bits before the point. */
static int16_t gate_s8(const lstm_layer *k, int32_t row, const int8_t *in, const int8_t *hidden)
{
    const int32_t one =
        row_of_products(k->begins[row], in, k->weights + row * k->inputs, k->inputs);
    const int32_t other =
        row_of_products(k->recurrent_begins[row], hidden, k->recurrent + row * k->units, k->units);
    return saturated16(
        saturated16(requantised(one, k->factors[row], k->shifts[row])) +
        saturated16(requantised(other, k->recurrent_factors[row], k->recurrent_shifts[row])));
}

/* `times` steps of one sequence of a batch; the states are updated. */
KERNEL lstm_s8(const lstm_layer *k, const int8_t *in, int32_t in_stride, int32_t times,
               int8_t *hidden, int16_t *cell, int8_t *out, int32_t out_stride)
{
    const uint16_t *const table = k->logistic;
    for (int32_t t = 0; t < times; ++t, in += in_stride, out += out_stride) {
        for (int32_t j = 0; j < k->units; ++j) {
            const int16_t taken = logistic16(table, 3 * gate_s8(k, j, in, hidden));
            const int16_t kept = logistic16(table, 3 * gate_s8(k, k->units + j, in, hidden));
            const int16_t fresh =
                tanh16(table, thirds_of(gate_s8(k, 2 * k->units + j, in, hidden), 3));
            const int16_t shown = logistic16(table, 3 * gate_s8(k, 3 * k->units + j, in, hidden));
            int32_t now =
                saturated16(times16(kept, cell[j], 15) + times16(taken, fresh, 15 + k->cell_bits));
            if (k->clip > 0)
                now = clamped(now, -k->clip, k->clip);
            cell[j] = (int16_t)now;
            now = shown * tanh16(table, thirds_of((int16_t)now, k->cell_bits));
            now = requantised(now, k->hidden_factor, k->hidden_shift) + k->hidden_zero;
            out[j] = (int8_t)clamped(now, -128, 127);
        }
        /* Only now: all units read the state from before. */
        for (int32_t j = 0; j < k->units; ++j)
            hidden[j] = out[j];
    }
}

/* One for each of
   THE_LSTM  | THE_GRU  | THE_RNN  | THE_LAYER  | PRODUCTS      | GATE      | STORED   | NUMBER
   lstm_f32  | gru_f32  | rnn_f32  | gates_f32  | products_f32  | gate_f32  | float    | (float)
   lstm_f16  | gru_f16  | rnn_f16  | gates_f16  | products_f16  | gate_f16  | uint16_t | half_of
   lstm_bf16 | gru_bf16 | rnn_bf16 | gates_bf16 | products_bf16 | gate_bf16 | uint16_t | upper_of */

/* One direction of a recurrent layer. Gates of an LSTM are input, forget, cell, output; those of a
   GRU update, reset, hidden; an RNN has one. */
typedef struct {
    int32_t inputs, units;
    float clip;
    const STORED *weights;
    const STORED *recurrent;
    const float *bias;
    const float *reset_bias;
} THE_LAYER;

static float PRODUCTS(float sum, const STORED *weights, const float *values, int32_t count)
{
    for (int32_t i = 0; i < count; ++i)
        sum += NUMBER(weights[i]) * values[i];
    return sum;
}

static float GATE(const THE_LAYER *k, int32_t row, const float *in, const float *hidden)
{
    const float sum = PRODUCTS(k->bias[row], k->weights + row * k->inputs, in, k->inputs);
    return PRODUCTS(sum, k->recurrent + row * k->units, hidden, k->units);
}

/* `times` steps of one sequence of a batch; the states are updated. Strides in floats. */
KERNEL THE_LSTM(const THE_LAYER *k, const float *in, int32_t in_stride, int32_t times,
                float *hidden, float *cell, float *out, int32_t out_stride)
{
    for (int32_t t = 0; t < times; ++t, in += in_stride, out += out_stride) {
        for (int32_t j = 0; j < k->units; ++j) {
            const float input = logistic_f32(GATE(k, j, in, hidden));
            const float forget = logistic_f32(GATE(k, k->units + j, in, hidden));
            const float change = tanhf(GATE(k, 2 * k->units + j, in, hidden));
            const float shown = logistic_f32(GATE(k, 3 * k->units + j, in, hidden));
            cell[j] = clamped_f32(forget * cell[j] + input * change, -k->clip, k->clip);
            out[j] = shown * tanhf(cell[j]);
        }
        /* Only now: all units read the state from before. */
        for (int32_t j = 0; j < k->units; ++j)
            hidden[j] = out[j];
    }
}

/* The same of a GRU. The reset gate applies to the state, in `reset`; or, where that is null, to
   the products with it and their bias. */
KERNEL THE_GRU(const THE_LAYER *k, const float *in, int32_t in_stride, int32_t times, float *hidden,
               float *reset, float *out, int32_t out_stride)
{
    const int32_t units = k->units;
    const STORED *const last = k->recurrent + 2 * units * units;
    for (int32_t t = 0; t < times; ++t, in += in_stride, out += out_stride) {
        for (int32_t j = 0; j < units && reset != NULL; ++j)
            reset[j] = hidden[j] * logistic_f32(GATE(k, units + j, in, hidden));
        for (int32_t j = 0; j < units; ++j) {
            const int32_t row = 2 * units + j;
            const float update = logistic_f32(GATE(k, j, in, hidden));
            float sum = PRODUCTS(k->bias[row], k->weights + row * k->inputs, in, k->inputs);
            if (reset != NULL)
                sum = PRODUCTS(sum, last + j * units, reset, units);
            else
                sum += logistic_f32(GATE(k, units + j, in, hidden)) *
                       PRODUCTS(k->reset_bias[j], last + j * units, hidden, units);
            out[j] = (1.0f - update) * tanhf(sum) + update * hidden[j];
        }
        for (int32_t j = 0; j < units; ++j)
            hidden[j] = out[j];
    }
}

/* The same of an RNN, whose state is a hyperbolic tangent, or what is above 0 if it rectifies. */
KERNEL THE_RNN(const THE_LAYER *k, const float *in, int32_t in_stride, int32_t times, float *hidden,
               int32_t rectifies, float *out, int32_t out_stride)
{
    for (int32_t t = 0; t < times; ++t, in += in_stride, out += out_stride) {
        for (int32_t j = 0; j < k->units; ++j) {
            const float sum = GATE(k, j, in, hidden);
            out[j] = rectifies ? (sum > 0.0f ? sum : 0.0f) : tanhf(sum);
        }
        for (int32_t j = 0; j < k->units; ++j)
            hidden[j] = out[j];
    }
}
