/* What turns sums into results, from some output on. Of each output there are twice the bias and
   the factor; a shift is to the right, less 1. */
typedef struct {
    const int32_t *scales;
    const int8_t *shifts;
    int32_t doubled_zero;
} results_s8;

static inline results_s8 results_of(const conv_layer *k)
{
    results_s8 r;
    r.scales = k->bias;
    r.shifts = k->shifts;
    r.doubled_zero = 2 * k->out_zero + 1;
    return r;
}

/* The result of the next output, from twice its sum. */
static inline int32_t next_result(results_s8 *r, int32_t doubled_sum)
{
    const int32_t sum = r->scales[0] + doubled_sum, factor = r->scales[1];
    const int32_t shift = HALVES_TO_EVEN ? 0 : *r->shifts++;
    int32_t doubled;
    r->scales += 2;
    if (HALVES_TO_EVEN) {
        float scale;
        memcpy(&scale, &factor, sizeof scale);
        doubled = 2 * nearest_even((float)(sum >> 1) * scale);
    } else if (SINGLE_ROUNDING) {
        doubled = 2 * requantised(sum >> 1, factor, ~shift);
    } else {
        const int32_t high = rounded_high(sum, factor);
        doubled = (high + (high >> 31)) >> shift; /* Halves away from zero. */
    }
    return saturated_half(doubled + r->doubled_zero);
}

static inline int is_narrow(const conv_layer *k)
{
    return k->low > -128 || k->high < 127;
}

static inline void clamp_results(const conv_layer *k, int8_t *results, int32_t count)
{
    for (int32_t i = 0; i < count; ++i)
        results[i] = (int8_t)clamped(results[i], k->low, k->high);
}
