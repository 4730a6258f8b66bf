/* What turns sums into results, from some output on. Of each output there are twice the bias and
   the factor; a shift is to the right, less 1. With vectors, of each four outputs there are the
   biases, then the factors, and of those left the bias and the factor; a shift is to the left. */
typedef struct {
    const int32_t *scales;
    const int8_t *shifts;
    int32_t doubled_zero;
#if HAS_VECTORS
    int32_t low, high;
#endif
} results_s8;

static inline results_s8 results_of(const conv_layer *k)
{
    results_s8 r;
    r.scales = k->bias;
    r.shifts = k->shifts;
    r.doubled_zero = 2 * k->out_zero + 1;
#if HAS_VECTORS
    r.low = k->low;
    r.high = k->high;
#endif
    return r;
}

#if HAS_VECTORS
/* The same from an output on whose number is a multiple of four. */
static inline results_s8 results_from(const conv_layer *k, int32_t output)
{
    results_s8 r = results_of(k);
    r.scales += 2 * output;
    r.shifts += HALVES_TO_EVEN ? 0 : output;
    return r;
}
#endif

static inline int is_narrow(const conv_layer *k)
{
    return k->low > -128 || k->high < 127;
}

/* Twice a result without its zero point, or one more, from twice a sum with its bias. */
static inline int32_t doubled_result(int32_t sum, int32_t factor, int32_t shift)
{
    if (HALVES_TO_EVEN) {
        float scale;
        memcpy(&scale, &factor, sizeof scale);
        return 2 * nearest_even((float)(sum >> 1) * scale);
    }
    if (SINGLE_ROUNDING)
        return 2 * requantised(sum >> 1, factor, ~shift);
    const int32_t high = rounded_high(sum, factor);
    return (high + (high >> 31)) >> shift; /* Halves away from zero. */
}

#if HAS_VECTORS
/* The results of the next four outputs without their zero point, from sums with their biases. */
static inline int32x4_t scaled_four(results_s8 *r, int32x4_t sums)
{
#if SINGLE_ROUNDING || (HALVES_TO_EVEN && !(__ARM_FEATURE_MVE & 2))
    int32_t each[4];
    vst1q_s32(each, sums);
    for (int32_t i = 0; i < 4; ++i) {
        const int32_t shift = HALVES_TO_EVEN ? 0 : ~r->shifts[i];
        each[i] = doubled_result(2 * each[i], r->scales[4 + i], shift) >> 1;
    }
    int32x4_t value = vld1q_s32(each);
#elif HALVES_TO_EVEN
    const float32x4_t factors = vreinterpretq_f32_s32(vld1q_s32(r->scales + 4));
    int32x4_t value = vcvtnq_s32_f32(vmulq_f32(vcvtq_f32_s32(sums), factors));
#else
    int32x4_t value = vqrdmulhq_s32(sums, vld1q_s32(r->scales + 4));
    value = vaddq_s32(value, vshrq_n_s32(value, 31)); /* Halves away from zero. */
    value = vrshlq_s32(value, vldrbq_s32(r->shifts));
#endif
    r->scales += 8;
    r->shifts += HALVES_TO_EVEN ? 0 : 4;
    return value;
}

/* The same from sums without biases. */
static inline int32x4_t scaled_with_biases(results_s8 *r, int32x4_t sums)
{
    return scaled_four(r, vaddq_s32(sums, vld1q_s32(r->scales)));
}

/* Write results that have no zero point yet. */
static inline void write_four(int8_t *to, const results_s8 *r, int32x4_t value)
{
    value = vqaddq_n_s32(value, r->doubled_zero >> 1);
    value = vminq_s32(vmaxq_s32(value, vdupq_n_s32(r->low)), vdupq_n_s32(r->high));
    vstrbq_s32(to, value);
}

/* Numbers of twice the bits between those of another vector, clamped. */
static inline int16x8_t between(int32x4_t even, int32x4_t odd)
{
    return vqmovntq_s32(vqmovnbq_s32(vreinterpretq_s16_s32(even), even), odd);
}
#else
/* The result of the next output, from twice its sum. */
static inline int32_t next_result(results_s8 *r, int32_t doubled_sum)
{
    const int32_t sum = r->scales[0] + doubled_sum, factor = r->scales[1];
    const int32_t shift = HALVES_TO_EVEN ? 0 : *r->shifts++;
    r->scales += 2;
    return saturated_half(doubled_result(sum, factor, shift) + r->doubled_zero);
}
#endif

static inline void clamp_results(const conv_layer *k, int8_t *results, int32_t count)
{
    for (int32_t i = 0; i < count; ++i)
        results[i] = (int8_t)clamped(results[i], k->low, k->high);
}
