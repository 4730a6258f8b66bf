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

#if HAS_VECTORS
/* Write the results of the next four outputs, from twice their sums. */
static inline void write_four(int8_t *to, const conv_layer *k, results_s8 *r, int32x4_t sums)
{
    const int32x4x2_t scales = vld2q_s32(r->scales);
    const int32x4_t shifts = vnegq_s32(vldrbq_s32(r->shifts));
    int32x4_t value = vrmulhq_s32(vaddq_s32(scales.val[0], sums), scales.val[1]);
    value = vshlq_s32(vaddq_s32(value, vshrq_n_s32(value, 31)), shifts);
    value = vshrq_n_s32(vaddq_n_s32(value, r->doubled_zero), 1);
    value = vminq_s32(vmaxq_s32(value, vdupq_n_s32(k->low)), vdupq_n_s32(k->high));
    vstrbq_s32(to, value);
    r->scales += 8;
    r->shifts += 4;
}
#endif

static inline int is_narrow(const conv_layer *k)
{
    return k->low > -128 || k->high < 127;
}

static inline void clamp_results(const conv_layer *k, int8_t *results, int32_t count)
{
    for (int32_t i = 0; i < count; ++i)
        results[i] = (int8_t)clamped(results[i], k->low, k->high);
}
