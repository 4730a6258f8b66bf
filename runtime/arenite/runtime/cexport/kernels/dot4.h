/* Add the products of `count` inputs with the weights of four outputs to their sums. */
static inline void dot4(int32_t *sums, const int8_t *input, const int8_t *filter, int32_t count,
                        int32_t offset)
{
    int32_t a = sums[0], b = sums[1], c = sums[2], d = sums[3];
#if FILTER_ZERO_POINTS
    int32_t total = sums[4];
#endif
    for (const int8_t *end = input + count; input < end; ++input, filter += 4) {
        const int32_t x = *input + offset;
        a += x * filter[0];
        b += x * filter[1];
        c += x * filter[2];
        d += x * filter[3];
#if FILTER_ZERO_POINTS
        total += x;
#endif
    }
    sums[0] = a;
    sums[1] = b;
    sums[2] = c;
    sums[3] = d;
#if FILTER_ZERO_POINTS
    sums[4] = total;
#endif
}

/* The sums that a block of four outputs begins with. */
static inline void begin4(int32_t *sums, const conv_layer *k, int32_t block)
{
    for (int32_t i = 0; i < 4; ++i)
        sums[i] = k->bias[4 * block + i];
#if FILTER_ZERO_POINTS
    sums[4] = 0;
#endif
}

/* Write the first `count` results of a block; by now every input of it has been read. */
static inline void finish4(int8_t *out, const int32_t *sums, const conv_layer *k, int32_t block,
                           int32_t count)
{
    int32_t at = 4 * block * k->factor_step;
    for (int32_t i = 0; i < count; ++i, at += k->factor_step) {
#if FILTER_ZERO_POINTS
        const int32_t sum = sums[i] + sums[4] * k->filter_offset;
#else
        const int32_t sum = sums[i];
#endif
        const int32_t value = requantised(sum, k->factors[at], k->shifts[at]) + k->out_zero;
        out[i] = (int8_t)clamped(value, k->low, k->high);
    }
}
