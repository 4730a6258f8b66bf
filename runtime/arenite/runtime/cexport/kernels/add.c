#include "common.h"
#include "dsp.h"
#include "add_layer.h"

#if HAS_MVE && !SINGLE_ROUNDING
/* As `requantised`. */
static inline int32x4_t requantised_four(int32x4_t sums, int32_t factor, int32_t shift)
{
    const int32x4_t left = vdupq_n_s32(shift > 0 ? shift : 0);
    const int32x4_t right = vdupq_n_s32(shift < 0 ? shift : 0);
    const int32x4_t high = vqrdmulhq_n_s32(vshlq_s32(sums, left), factor);
    /* Halves away from zero. */
    return vrshlq_s32(vaddq_s32(high, vshrq_n_s32(vandq_s32(high, right), 31)), right);
}
#endif

#if HAS_RVV && !SINGLE_ROUNDING
/* The same of many. */
INLINED vint32m4_t requantised_many(vint32m4_t sums, int32_t factor, int32_t shift, size_t count)
{
    const size_t left = shift > 0 ? (size_t)shift : 0, right = shift < 0 ? (size_t)-shift : 0;
    vint32m4_t high = __riscv_vsll_vx_i32m4(sums, left, count);
    high = __riscv_vsmul_vx_i32m4(high, factor, __RISCV_VXRM_RNU, count);
    if (right > 0) /* Halves away from zero. */
        high = __riscv_vadd_vv_i32m4(high, __riscv_vsra_vx_i32m4(high, 31, count), count);
    return __riscv_vssra_vx_i32m4(high, right, __RISCV_VXRM_RNU, count);
}
#endif

#if HAS_RVV && !SINGLE_ROUNDING
static inline vint32m4_t many_of_s8(const int8_t *at, size_t count)
{
    return __riscv_vsext_vf4_i32m4(__riscv_vle8_v_i8m1(at, count), count);
}

static inline void store_s8(int8_t *to, vint32m4_t value, size_t count)
{
    const vint16m2_t halves = __riscv_vnsra_wx_i16m2(value, 0, count);
    __riscv_vse8_v_i8m1(to, __riscv_vnsra_wx_i8m1(halves, 0, count), count);
}
#endif

#if HAS_RVV && !SINGLE_ROUNDING
static inline vint32m4_t many_of_s16(const int16_t *at, size_t count)
{
    return __riscv_vsext_vf2_i32m4(__riscv_vle16_v_i16m2(at, count), count);
}

static inline void store_s16(int16_t *to, vint32m4_t value, size_t count)
{
    __riscv_vse16_v_i16m2(to, __riscv_vnsra_wx_i16m2(value, 0, count), count);
}
#endif

/* One for each column of
   THE_KERNEL  | add_s8         | add_s16
   AN_INTEGER  | int8_t         | int16_t
   ADDED       | added_s8       | added_s16
   FRACTION    | 20             | 15
   ADD_VECTORS | add_vectors_s8 | add_vectors_s16
   LOAD        | vldrbq_s32     | vldrhq_s32
   STORE       | vstrbq_s32     | vstrhq_s32
   LOAD_MANY   | many_of_s8     | many_of_s16
   STORE_MANY  | store_s8       | store_s16 */

static inline int32_t ADDED(const add_layer *k, int32_t a, int32_t b)
{
    const int32_t x = (a + k->offset_a) * (1 << FRACTION), z = (b + k->offset_b) * (1 << FRACTION);
    const int32_t sum =
        requantised(x, k->factor_a, k->shift_a) + k->sign * requantised(z, k->factor_b, k->shift_b);
    return clamped(requantised(sum, k->factor, k->shift) + k->out_zero, k->low, k->high);
}

#if HAS_MVE && !SINGLE_ROUNDING
/* Make the results of vectors of a row, and return how many these are. */
static inline int32_t ADD_VECTORS(const add_layer *k, const AN_INTEGER *a, const AN_INTEGER *b,
                                  AN_INTEGER *to)
{
    const int32_t count = k->width & ~3;
    for (int32_t i = 0; i < count; i += 4) {
        int32x4_t x = vshlq_n_s32(vaddq_n_s32(LOAD(a + i), k->offset_a), FRACTION);
        int32x4_t z = vshlq_n_s32(vaddq_n_s32(LOAD(b + i), k->offset_b), FRACTION);
        x = requantised_four(x, k->factor_a, k->shift_a);
        z = vmulq_n_s32(requantised_four(z, k->factor_b, k->shift_b), k->sign);
        x = requantised_four(vaddq_s32(x, z), k->factor, k->shift);
        x = vaddq_n_s32(x, k->out_zero);
        STORE(to + i, vminq_s32(vmaxq_s32(x, vdupq_n_s32(k->low)), vdupq_n_s32(k->high)));
    }
    return count;
}
#elif HAS_RVV && !SINGLE_ROUNDING
static inline int32_t ADD_VECTORS(const add_layer *k, const AN_INTEGER *a, const AN_INTEGER *b,
                                  AN_INTEGER *to)
{
    for (size_t count, rest = (size_t)k->width; rest > 0;
         rest -= count, a += count, b += count, to += count) {
        count = __riscv_vsetvl_e32m4(rest);
        vint32m4_t x = __riscv_vadd_vx_i32m4(LOAD_MANY(a, count), k->offset_a, count);
        vint32m4_t z = __riscv_vadd_vx_i32m4(LOAD_MANY(b, count), k->offset_b, count);
        x = __riscv_vsll_vx_i32m4(x, FRACTION, count);
        z = __riscv_vsll_vx_i32m4(z, FRACTION, count);
        x = requantised_many(x, k->factor_a, k->shift_a, count);
        z = requantised_many(z, k->factor_b, k->shift_b, count);
        x = __riscv_vmacc_vx_i32m4(x, k->sign, z, count);
        x = requantised_many(x, k->factor, k->shift, count);
        x = __riscv_vadd_vx_i32m4(x, k->out_zero, count);
        x = __riscv_vmax_vx_i32m4(x, k->low, count);
        STORE_MANY(to, __riscv_vmin_vx_i32m4(x, k->high, count), count);
    }
    return k->width;
}
#endif

/* Rows [first, end). */
KERNEL THE_KERNEL(const add_layer *k, in_rows one, in_rows other, out_rows out, int32_t first,
                  int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        const AN_INTEGER *a = (const AN_INTEGER *)(const void *)in_row(one, y);
        const AN_INTEGER *b = (const AN_INTEGER *)(const void *)in_row(other, y);
        AN_INTEGER *to = (AN_INTEGER *)(void *)out_row(out, y);
        int32_t done = 0;
#if (HAS_MVE || HAS_RVV) && !SINGLE_ROUNDING
        if (k->step_a == 1 && k->step_b == 1)
            done = ADD_VECTORS(k, a, b, to);
        a += done;
        b += done;
#endif
        for (int32_t i = done; i < k->width; ++i, a += k->step_a, b += k->step_b)
            to[i] = (AN_INTEGER)ADDED(k, *a, *b);
    }
}
