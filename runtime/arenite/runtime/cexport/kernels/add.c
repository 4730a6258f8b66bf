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

/* One for each of
   THE_KERNEL | AN_INTEGER | ADDED     | FRACTION | ADD_FOURS     | LOAD       | STORE
   add_s8     | int8_t     | added_s8  | 20       | add_fours_s8  | vldrbq_s32 | vstrbq_s32
   add_s16    | int16_t    | added_s16 | 15       | add_fours_s16 | vldrhq_s32 | vstrhq_s32 */

static inline int32_t ADDED(const add_layer *k, int32_t a, int32_t b)
{
    const int32_t x = (a + k->offset_a) * (1 << FRACTION), z = (b + k->offset_b) * (1 << FRACTION);
    const int32_t sum =
        requantised(x, k->factor_a, k->shift_a) + k->sign * requantised(z, k->factor_b, k->shift_b);
    return clamped(requantised(sum, k->factor, k->shift) + k->out_zero, k->low, k->high);
}

#if HAS_MVE && !SINGLE_ROUNDING
/* Make the results of fours of a row, and return how many these are. */
static inline int32_t ADD_FOURS(const add_layer *k, const AN_INTEGER *a, const AN_INTEGER *b,
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
#if HAS_MVE && !SINGLE_ROUNDING
        if (k->step_a == 1 && k->step_b == 1)
            done = ADD_FOURS(k, a, b, to);
        a += done;
        b += done;
#endif
        for (int32_t i = done; i < k->width; ++i, a += k->step_a, b += k->step_b)
            to[i] = (AN_INTEGER)ADDED(k, *a, *b);
    }
}
