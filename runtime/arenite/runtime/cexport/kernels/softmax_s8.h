/* Softmax of rows of `width` bytes. `exponentials` are those of differences from the largest,
   0 to 255, of 31 fractional bits; `least` is the largest difference that counts. */
typedef struct {
    int32_t width, least;
    const int32_t *exponentials;
} softmax_layer;

static inline int32_t high_product(int32_t one, int32_t other)
{
    return (int32_t)(((int64_t)one * other + (1 << 30)) >> 31);
}

/* value / 2^right, halves away from zero; `right` is at least 1. */
static inline int32_t halved(int32_t value, int32_t right)
{
    return right > 31 ? 0 : (int32_t)((value + ((int64_t)1 << (right - 1)) - (value < 0)) >> right);
}

/* 1 / (1 + fraction) of 31 fractional bits, by three steps of Newton's method. */
static int32_t reciprocal(int32_t fraction)
{
    const int32_t half = (int32_t)(((int64_t)fraction + 0x7fffffff + 1) / 2);
    int32_t x = 1515870810 + high_product(half, -1010580540);
    for (int32_t i = 0; i < 3; ++i) {
        const int32_t rest = (1 << 29) - high_product(half, x);
        x += high_product(x, rest) * 4;
    }
    return x >= 1 << 30 ? 0x7fffffff : x * 2;
}

/* Writes the softmax of a row, which is read before it is written. */
static void softmax_row_s8(const softmax_layer *k, const int8_t *from, int8_t *to)
{
    int32_t most = -128, sum = 0, headroom = 0;
    for (int32_t i = 0; i < k->width; ++i)
        most = from[i] > most ? from[i] : most;
    for (int32_t i = 0; i < k->width; ++i)
        if (most - from[i] <= k->least)
            sum += halved(k->exponentials[most - from[i]], 12);
    while (((uint32_t)sum << headroom) < 0x80000000u)
        ++headroom;
    const int32_t scale = reciprocal((int32_t)(((uint32_t)sum << headroom) - 0x80000000u));
    for (int32_t i = 0; i < k->width; ++i) {
        int32_t value = -128;
        if (most - from[i] <= k->least) {
            const int32_t share = high_product(scale, k->exponentials[most - from[i]]);
            value += halved(share, 12 - headroom + 31 - 8);
        }
        to[i] = (int8_t)clamped(value, -128, 127);
    }
}

/* Softmax of rows of `width` bytes, halves to the even integer. `exponentials` are those of
   differences from the largest, 0 to 255. */
typedef struct {
    int32_t width, out_zero;
    float out_scale;
    const float *exponentials;
} softmax_even_layer;

/* Writes the softmax of a row, which is read before it is written. Powers are added up in the order
   of our runtime. */
static void softmax_row_even_s8(const softmax_even_layer *k, const int8_t *from, int8_t *to)
{
    const int32_t whole = k->width / 16 * 16;
    int32_t most = -128;
    float lanes[16] = {0.0f}, sum = 0.0f;
    for (int32_t i = 0; i < k->width; ++i)
        most = from[i] > most ? from[i] : most;
    for (int32_t i = 0; i < whole; ++i)
        lanes[i % 16] += k->exponentials[most - from[i]];
    for (int32_t i = 0; i < 16; ++i)
        sum += lanes[i];
    for (int32_t i = whole; i < k->width; ++i)
        sum += k->exponentials[most - from[i]];
    for (int32_t i = 0; i < k->width; ++i) {
        const float share = k->exponentials[most - from[i]] / sum;
        to[i] = (int8_t)clamped(nearest_even(share / k->out_scale) + k->out_zero, -128, 127);
    }
}
