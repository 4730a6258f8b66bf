/* What turns sums into results, from some output on. Of each output there are twice the bias and
   the factor; a shift is to the right, less 1. With MVE, of each four outputs there are the
   biases, then the factors, and of those left the bias and the factor; a shift is to the left.
   With RVV, the biases of all outputs come first, and factors are `to_factors` behind. */
typedef struct {
    const int32_t *scales;
    const int8_t *shifts;
    int32_t doubled_zero;
#if HAS_MVE || HAS_RVV
    int32_t low, high;
#endif
#if HAS_RVV
    int32_t to_factors;
#endif
} results_s8;

static inline results_s8 results_of(const conv_layer *k)
{
    results_s8 r;
    r.scales = k->bias;
    r.shifts = k->shifts;
    r.doubled_zero = 2 * k->out_zero + 1;
#if HAS_MVE || HAS_RVV
    r.low = k->low;
    r.high = k->high;
#endif
#if HAS_RVV
    r.to_factors = k->out_depth;
#endif
    return r;
}

#if HAS_MVE
/* The same from an output on whose number is a multiple of four. */
static inline results_s8 results_from(const conv_layer *k, int32_t output)
{
    results_s8 r = results_of(k);
    r.scales += 2 * output;
    r.shifts += HALVES_TO_EVEN ? 0 : output;
    return r;
}
#endif

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

#if HAS_MVE
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
#elif HAS_RVV
/* Where halves are rounded to even by a processor with vectors of integers alone, results pass
   through memory. */
#define IN_MEMORY (HALVES_TO_EVEN && __riscv_v_elen_fp < 32)
#define MOST_IN_MEMORY 32

/* How many of the outputs that are left a vector holds the sums of. */
static inline size_t most_outputs(int32_t rest)
{
    return __riscv_vsetvl_e8m2((size_t)clamped(rest, 0, IN_MEMORY ? MOST_IN_MEMORY : INT32_MAX));
}

/* Twice the results of some outputs without their zero point, or one more, from their sums. */
INLINED vint32m8_t doubled_results(const results_s8 *r, int32_t output, vint32m8_t sums,
                                   size_t outputs)
{
    const int32_t *const factors = r->scales + r->to_factors + output;
    if (IN_MEMORY) {
        int32_t each[MOST_IN_MEMORY];
        __riscv_vse32_v_i32m8(each, sums, outputs);
        for (size_t i = 0; i < outputs; ++i)
            each[i] = doubled_result(2 * each[i], factors[i], 0);
        return __riscv_vle32_v_i32m8(each, outputs);
    }
#if HALVES_TO_EVEN && !IN_MEMORY
    vfloat32m8_t value = __riscv_vfcvt_f_x_v_f32m8(sums, outputs);
    const void *const floats = factors;
    value = __riscv_vfmul_vv_f32m8(value, __riscv_vle32_v_f32m8((const float *)floats, outputs),
                                   outputs);
    value = __riscv_vfmin_vf_f32m8(__riscv_vfmax_vf_f32m8(value, -4194303.0f, outputs), 4194303.0f,
                                   outputs);
    sums = __riscv_vfcvt_x_f_v_i32m8_rm(value, __RISCV_FRM_RNE, outputs);
    return __riscv_vsll_vx_i32m8(sums, 1, outputs);
#else
    const vint32m8_t by = __riscv_vle32_v_i32m8(factors, outputs);
#if SINGLE_ROUNDING
    vint32m8_t high = __riscv_vmulh_vv_i32m8(__riscv_vsll_vx_i32m8(sums, 1, outputs), by, outputs);
#else
    vint32m8_t high = __riscv_vsmul_vv_i32m8(sums, by, __RISCV_VXRM_RNU, outputs);
    /* Halves away from zero. */
    high = __riscv_vadd_vv_i32m8(high, __riscv_vsra_vx_i32m8(high, 31, outputs), outputs);
#endif
    const vuint8m2_t shifts = __riscv_vle8_v_u8m2((const uint8_t *)r->shifts + output, outputs);
    return __riscv_vsra_vv_i32m8(high, __riscv_vzext_vf4_u32m8(shifts, outputs), outputs);
#endif
}

/* Write the results of some outputs, from sums with their biases; by now every input of them has
   been read. */
INLINED void write_results(int8_t *to, const results_s8 *r, int32_t output, vint32m8_t sums,
                           size_t outputs)
{
    vint32m8_t doubled = doubled_results(r, output, sums, outputs);
    doubled = __riscv_vadd_vx_i32m8(doubled, r->doubled_zero - 1, outputs);
    const vint16m4_t value = __riscv_vnclip_wx_i16m4(doubled, 1, __RISCV_VXRM_RNU, outputs);
    vint8m2_t results = __riscv_vnclip_wx_i8m2(value, 0, __RISCV_VXRM_RNU, outputs);
    results = __riscv_vmax_vx_i8m2(results, (int8_t)r->low, outputs);
    results = __riscv_vmin_vx_i8m2(results, (int8_t)r->high, outputs);
    __riscv_vse8_v_i8m2(to, results, outputs);
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

/* Write the results of the next two outputs, from twice their sums. */
static inline void next_pair(results_s8 *r, int8_t *to, int32_t first, int32_t second)
{
#if HAS_DSP && !HALVES_TO_EVEN && !SINGLE_ROUNDING
    /* As `doubled_result`, with the steps of both beside each other, and loads side by side. */
    int32_t factor, other, bias, shift;
    __asm__(
        "ldr %[factor], [%[scales], #4]\n\t"
        "ldr %[other], [%[scales], #12]\n\t"
        "ldr %[bias], [%[scales], #8]\n\t"
        "ldrh %[shift], [%[shifts]], #2\n\t"
        "add %[second], %[second], %[bias]\n\t"
        "ldr %[bias], [%[scales]], #16\n\t"
        "smmulr %[second], %[second], %[other]\n\t"
        "add %[first], %[first], %[bias]\n\t"
        "smmulr %[first], %[first], %[factor]\n\t"
        "lsr %[other], %[shift], #8\n\t"
        "add %[second], %[second], %[second], asr #31\n\t"
        "add %[first], %[first], %[first], asr #31\n\t"
        "asr %[second], %[second], %[other]\n\t"
        "asr %[first], %[first], %[shift]\n\t"
        "add %[second], %[second], %[zero]\n\t"
        "add %[first], %[first], %[zero]\n\t"
        "ssat %[second], #8, %[second], asr #1\n\t"
        "ssat %[first], #8, %[first], asr #1"
        : [first] "+r"(first), [second] "+r"(second), [scales] "+r"(r->scales),
          [shifts] "+r"(r->shifts), [factor] "=&r"(factor), [other] "=&r"(other),
          [bias] "=&r"(bias), [shift] "=&r"(shift)
        : [zero] "r"(r->doubled_zero)
        : "memory");
    to[0] = (int8_t)first;
    to[1] = (int8_t)second;
#else
    to[0] = (int8_t)next_result(r, first);
    to[1] = (int8_t)next_result(r, second);
#endif
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
#endif
