/* sum * factor * 2^(shift - 31), rounded as TensorFlow Lite does. */
static inline int32_t requantised(int32_t sum, int32_t factor, int32_t shift)
{
#if SINGLE_ROUNDING
    return (int32_t)(((int64_t)sum * factor + ((int64_t)1 << (30 - shift))) >> (31 - shift));
#else
    const int32_t left = shift > 0 ? shift : 0;
    const int32_t right = left - shift;
    const int32_t half = (int32_t)((uint32_t)1 << right >> 1);
    const int64_t product = (int64_t)(int32_t)((uint32_t)sum << left) * factor;
    const int32_t high = (int32_t)((product + (1 << 30)) >> 31);
    /* Halves away from zero. */
    return (high + half - (half > 0 && high < 0)) >> right;
#endif
}

static inline int32_t clamped(int32_t value, int32_t low, int32_t high)
{
    return value < low ? low : value > high ? high : value;
}
