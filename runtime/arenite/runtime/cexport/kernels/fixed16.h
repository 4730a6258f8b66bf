/* Functions of numbers of 16 bits, some of them before the point, as gemmlowp computes them. Sums
   wrap round where they do not fit. */
static inline int32_t halves_away(int32_t x, int32_t right)
{
    const int32_t mask = (1 << right) - 1;
    return (x >> right) + ((x & mask) > (mask >> 1) + (x < 0));
}

static inline int16_t saturated16(int32_t x)
{
    return (int16_t)(x < -32768 ? -32768 : x > 32767 ? 32767 : x);
}

static int16_t times16(int16_t a, int16_t b)
{
    const int32_t wide = a * b;
    return saturated16((wide + (wide >= 0 ? 1 << 14 : 1 - (1 << 14))) / (1 << 15));
}

static inline int16_t left16(int16_t x, int32_t count)
{
    const int32_t most = (1 << (15 - count)) - 1;
    return (int16_t)(x > most ? 32767 : x < -most ? -32768 : x * (1 << count));
}

/* exp(x) of x in [-1/4, 0), no bits before the point: Taylor's series about -1/8. */
static int16_t exp_of_quarter16(int16_t a)
{
    const int16_t x = (int16_t)(a + (1 << 12));
    const int16_t square = times16(x, x);
    const int16_t cube = times16(square, x);
    const int16_t fourth = (int16_t)halves_away(times16(square, square), 2);
    const int16_t third = times16((int16_t)(fourth + cube), 10923);
    const int16_t higher = (int16_t)halves_away((int16_t)(third + square), 1);
    return saturated16(28918 + times16(28918, (int16_t)(x + higher)));
}

/* exp(a) of a <= 0 with `bits` before the point; none before that of the result. */
static int16_t exp_of_negative16(int16_t a, int32_t bits)
{
    /* exp(-2^e) of e from -2. */
    static const int16_t factors[7] = {25520, 19875, 12055, 4435, 600, 11, 0};
    const int16_t quarter = (int16_t)(1 << (13 - bits));
    const int16_t part = (int16_t)((a & (quarter - 1)) - quarter);
    const int16_t rest = (int16_t)(part - a);
    int16_t result = exp_of_quarter16(left16(part, bits));
    if (a == 0)
        return 32767;
    if (bits > 5 && a < -(1 << (20 - bits)))
        return 0;
    for (int32_t e = -2; e <= 4 && e < bits; ++e)
        if (rest & (1 << (15 - bits + e)))
            result = times16(result, factors[e + 2]);
    return result;
}

/* 2 / (1 + a) of a in (0, 1), with 2 bits before the point: Newton's method. */
static int16_t two_over_one_plus16(int16_t a)
{
    const int32_t doubled = a + 32767;
    const int16_t half = (int16_t)((doubled + (doubled >= 0 ? 1 : -1)) / 2);
    int16_t x = (int16_t)(23130 + times16(half, -15420));
    for (int32_t i = 0; i < 3; ++i) {
        const int16_t rest = (int16_t)((1 << 13) - times16(half, x));
        x = (int16_t)(x + left16(times16(x, rest), 2));
    }
    return x;
}

/* Both read numbers with `bits` before the point, and make numbers with none. */
static int16_t logistic16(int16_t a, int32_t bits)
{
    const int16_t below = (int16_t)(a > 0 ? -a : a);
    const int16_t result = left16(two_over_one_plus16(exp_of_negative16(below, bits)), 1);
    return (int16_t)(a == 0 ? 1 << 14 : a > 0 ? result : 32767 - result);
}

static int16_t tanh16(int16_t a, int32_t bits)
{
    const int16_t below = (int16_t)(a > 0 ? -a : a);
    const int16_t quotient = two_over_one_plus16(exp_of_negative16(below, bits + 1));
    const int16_t result = left16((int16_t)(quotient - (1 << 13)), 2);
    return (int16_t)(a == 0 ? 0 : a > 0 ? result : -result);
}
