#include "common.h"

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

/* Functions of numbers of 16 bits, some of them before the point, as gemmlowp computes them. Sums
   wrap round where they do not fit. */
static inline int32_t halves_away(int32_t x, int32_t right)
{
    const int32_t mask = (1 << right) - 1;
    return (x >> right) + ((x & mask) > (mask >> 1) + (x < 0));
}

static inline int16_t saturated16(int32_t x)
{
    return (int16_t)(x < -32768 ? -32768 : x > 32767 ? 32767 : x);
}

static int16_t times16(int16_t a, int16_t b)
{
    const int32_t wide = a * b;
    return saturated16((wide + (wide >= 0 ? 1 << 14 : 1 - (1 << 14))) / (1 << 15));
}

static inline int16_t left16(int16_t x, int32_t count)
{
    const int32_t most = (1 << (15 - count)) - 1;
    return (int16_t)(x > most ? 32767 : x < -most ? -32768 : x * (1 << count));
}

/* exp(x) of x in [-1/4, 0), no bits before the point: Taylor's series about -1/8. */
static int16_t exp_of_quarter16(int16_t a)
{
    const int16_t x = (int16_t)(a + (1 << 12));
    const int16_t square = times16(x, x);
    const int16_t cube = times16(square, x);
    const int16_t fourth = (int16_t)halves_away(times16(square, square), 2);
    const int16_t third = times16((int16_t)(fourth + cube), 10923);
    const int16_t higher = (int16_t)halves_away((int16_t)(third + square), 1);
    return saturated16(28918 + times16(28918, (int16_t)(x + higher)));
}

/* exp(a) of a <= 0 with `bits` before the point; none before that of the result. */
static int16_t exp_of_negative16(int16_t a, int32_t bits)
{
    /* exp(-2^e) of e from -2. */
    static const int16_t factors[7] = {25520, 19875, 12055, 4435, 600, 11, 0};
    const int16_t quarter = (int16_t)(1 << (13 - bits));
    const int16_t part = (int16_t)((a & (quarter - 1)) - quarter);
    const int16_t rest = (int16_t)(part - a);
    int16_t result = exp_of_quarter16(left16(part, bits));
    if (a == 0)
        return 32767;
    if (bits > 5 && a < -(1 << (20 - bits)))
        return 0;
    for (int32_t e = -2; e <= 4 && e < bits; ++e)
        if (rest & (1 << (15 - bits + e)))
            result = times16(result, factors[e + 2]);
    return result;
}

/* 2 / (1 + a) of a in (0, 1), with 2 bits before the point: Newton's method. */
static int16_t two_over_one_plus16(int16_t a)
{
    const int32_t doubled = a + 32767;
    const int16_t half = (int16_t)((doubled + (doubled >= 0 ? 1 : -1)) / 2);
    int16_t x = (int16_t)(23130 + times16(half, -15420));
    for (int32_t i = 0; i < 3; ++i) {
        const int16_t rest = (int16_t)((1 << 13) - times16(half, x));
        x = (int16_t)(x + left16(times16(x, rest), 2));
    }
    return x;
}

/* Both read numbers with `bits` before the point, and make numbers with none. */
static int16_t logistic16(int16_t a, int32_t bits)
{
    const int16_t below = (int16_t)(a > 0 ? -a : a);
    const int16_t result = left16(two_over_one_plus16(exp_of_negative16(below, bits)), 1);
    return (int16_t)(a == 0 ? 1 << 14 : a > 0 ? result : 32767 - result);
}

static int16_t tanh16(int16_t a, int32_t bits)
{
    const int16_t below = (int16_t)(a > 0 ? -a : a);
    const int16_t quotient = two_over_one_plus16(exp_of_negative16(below, bits + 1));
    const int16_t result = left16((int16_t)(quotient - (1 << 13)), 2);
    return (int16_t)(a == 0 ? 0 : a > 0 ? result : -result);
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
    const int16_t first = saturated16(requantised(one, k->factors[row], k->shifts[row]));
    return saturated16(requantised(other, k->recurrent_factors[row], k->recurrent_shifts[row]) +
                       first);
}

/* `times` steps of one sequence of a batch; the states are updated. */
KERNEL lstm_s8(const lstm_layer *k, const int8_t *in, int32_t in_stride, int32_t times,
               int8_t *hidden, int16_t *cell, int8_t *out, int32_t out_stride)
{
    for (int32_t t = 0; t < times; ++t, in += in_stride, out += out_stride) {
        for (int32_t j = 0; j < k->units; ++j) {
            const int16_t taken = logistic16(gate_s8(k, j, in, hidden), 3);
            const int16_t kept = logistic16(gate_s8(k, k->units + j, in, hidden), 3);
            const int16_t fresh = tanh16(gate_s8(k, 2 * k->units + j, in, hidden), 3);
            const int16_t shown = logistic16(gate_s8(k, 3 * k->units + j, in, hidden), 3);
            const int32_t old = halves_away(kept * cell[j], 15);
            const int32_t added = halves_away(taken * fresh, 15 + k->cell_bits);
            int32_t now = saturated16((int16_t)old + (int16_t)added);
            if (k->clip > 0)
                now = clamped(now, -k->clip, k->clip);
            cell[j] = (int16_t)now;
            now = shown * tanh16((int16_t)now, k->cell_bits);
            now = requantised(now, k->hidden_factor, k->hidden_shift) + k->hidden_zero;
            out[j] = (int8_t)clamped(now, -128, 127);
        }
        /* Only now: all units read the state from before. */
        for (int32_t j = 0; j < k->units; ++j)
            hidden[j] = out[j];
    }
}
