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
/* Write the results of the next four outputs, from their sums. */
static inline void write_four(int8_t *to, const conv_layer *k, results_s8 *r, int32x4_t sums)
{
#if SINGLE_ROUNDING || (HALVES_TO_EVEN && !(__ARM_FEATURE_MVE & 2))
    int32_t each[4], results[4];
    vst1q_s32(each, sums);
    for (int32_t i = 0; i < 4; ++i)
        results[i] = next_result(r, 2 * each[i]);
    int32x4_t value = vld1q_s32(results);
#else
    const int32x4x2_t scales = vld2q_s32(r->scales);
    int32x4_t value = vaddq_s32(scales.val[0], vshlq_n_s32(sums, 1));
#if HALVES_TO_EVEN
    const float32x4_t factors = vreinterpretq_f32_s32(scales.val[1]);
    const float32x4_t exact = vmulq_f32(vcvtq_f32_s32(vshrq_n_s32(value, 1)), factors);
    value = vqaddq_n_s32(vcvtnq_s32_f32(exact), k->out_zero);
#else
    /* Halves away from zero. */
    const int32x4_t left = vmvnq_s32(vldrbq_s32(r->shifts));
    value = vrmulhq_s32(value, scales.val[1]);
    value = vrshlq_s32(vaddq_s32(value, vshrq_n_s32(value, 31)), left);
    value = vaddq_n_s32(value, k->out_zero);
    r->shifts += 4;
#endif
    r->scales += 8;
#endif
    value = vminq_s32(vmaxq_s32(value, vdupq_n_s32(k->low)), vdupq_n_s32(k->high));
    vstrbq_s32(to, value);
}

/* The same for eight, from the sums of those at even places and at odd ones. */
static inline void write_eight(int8_t *to, const conv_layer *k, results_s8 *r, int32x4x2_t sums)
{
#if SINGLE_ROUNDING || HALVES_TO_EVEN
    int32_t in_order[8];
    vst2q_s32(in_order, sums);
    write_four(to, k, r, vld1q_s32(in_order));
    write_four(to + 4, k, r, vld1q_s32(in_order + 4));
#else
    const int32x4x4_t scales = vld4q_s32(r->scales);
    const int16x8_t left = vmvnq_s16(vldrbq_s16(r->shifts));
    int32x4_t even = vaddq_s32(scales.val[0], vshlq_n_s32(sums.val[0], 1));
    int32x4_t odd = vaddq_s32(scales.val[2], vshlq_n_s32(sums.val[1], 1));
    even = vrmulhq_s32(even, scales.val[1]);
    odd = vrmulhq_s32(odd, scales.val[3]);
    even = vrshlq_s32(vaddq_s32(even, vshrq_n_s32(even, 31)), vmovlbq_s16(left));
    odd = vrshlq_s32(vaddq_s32(odd, vshrq_n_s32(odd, 31)), vmovltq_s16(left));
    int16x8_t value = vqmovntq_s32(vqmovnbq_s32(vreinterpretq_s16_s32(even), even), odd);
    value = vqaddq_n_s16(value, k->out_zero);
    value = vminq_s16(vmaxq_s16(value, vdupq_n_s16(k->low)), vdupq_n_s16(k->high));
    vstrbq_s16(to, value);
    r->scales += 16;
    r->shifts += 8;
#endif
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
