#include "kernel.h"
#include "requantise.h"
#include "fixed16.h"

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
