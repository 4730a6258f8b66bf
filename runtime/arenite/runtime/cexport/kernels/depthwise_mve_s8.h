/* With MVE, weights of sixteen channels lie side by side, at the end those of eight and of
   four. 16 bits hold the sum of two products. */
#if HAS_MVE
/* Find the taps from one of them on; those outside the image are at zeros. */
static NOT_INLINED void find_taps(depthwise_window *at, const conv_layer *k, int32_t first)
{
    const int32_t step = k->dilation_x * k->depth, width = k->kernel_x;
    const int8_t **to = at->taps;
    const taps columns = at->columns;
    for (int32_t row = 0; row < k->kernel_y; ++row, first -= width) {
        const int32_t start = clamped(first, 0, width);
        const int32_t end = clamped(first + MOST_TAPS, 0, width);
        const int8_t *x = at->rows[row] + at->left + start * step;
        const int is_whole = columns.first <= start && columns.end >= end;
        for (int32_t i = start; i < end; ++i, x += step) {
            const int is_inside = is_whole || (i >= columns.first && i < columns.end);
            *to++ = is_inside && at->rows[row] != NULL ? x : at->zeros;
        }
    }
}

/* Sums of sixteen channels: of even places of the even ones, of odd places, then of the odd ones.
   Of eight channels the first two have the even ones and the odd ones, of four the first has all.
 */
typedef struct {
    int32x4_t a, b, c, d;
} channel_sums;

/* Add products of bytes at even places and at odd ones. */
static inline void add_halves(channel_sums *s, int16x8_t even, int16x8_t odd)
{
    s->a = vaddq_s32(s->a, vmovlbq_s16(even));
    s->b = vaddq_s32(s->b, vmovltq_s16(even));
    s->c = vaddq_s32(s->c, vmovlbq_s16(odd));
    s->d = vaddq_s32(s->d, vmovltq_s16(odd));
}

/* Two taps of sixteen channels. The processor has eight vectors, so their order is not left to the
   compiler. */
static inline void add_two_taps(channel_sums *s, const int8_t *x, const int8_t *y, const int8_t *w)
{
    int16x8_t even, odd;
    __asm__(
        "vldrb.8 q0, [%[x]]\n\t"
        "vldrb.8 q1, [%[w]]\n\t"
        "vmullb.s8 %q[even], q0, q1\n\t"
        "vmullt.s8 %q[odd], q0, q1\n\t"
        "vldrb.8 q0, [%[y]]\n\t"
        "vldrb.8 q1, [%[w], #16]\n\t"
        "vmullb.s8 q1, q0, q1\n\t"
        "vadd.i16 %q[even], %q[even], q1\n\t"
        "vldrb.8 q1, [%[w], #16]\n\t"
        "vmullt.s8 q0, q0, q1\n\t"
        "vadd.i16 %q[odd], %q[odd], q0"
        : [even] "=&w"(even), [odd] "=&w"(odd)
        : [x] "r"(x), [y] "r"(y), [w] "r"(w)
        : "q0", "q1", "memory");
    add_halves(s, even, odd);
}

static inline int16x8_t eight_products(const int8_t *x, const int8_t *w)
{
    return vmulq_s16(vldrbq_s16(x), vldrbq_s16(w));
}

INLINED const int8_t *tap_at(const depthwise_window *at, int32_t tap, int32_t channel)
{
    const int8_t *x = at->taps[tap];
    return x == at->zeros ? x : x + channel;
}

/* Add the products of the first of the taps that are found. */
INLINED const int8_t *add_taps(channel_sums *s, int32_t channels, const depthwise_window *at,
                               int32_t count, int32_t channel, const int8_t *w)
{
    int32_t tap = 0;
    for (; channels > 4 && tap + 2 <= count; tap += 2, w += 2 * channels) {
        const int8_t *x = tap_at(at, tap, channel), *y = tap_at(at, tap + 1, channel);
        if (channels == 16) {
            add_two_taps(s, x, y, w);
        } else {
            const int16x8_t two = vaddq_s16(eight_products(x, w), eight_products(y, w + channels));
            s->a = vaddq_s32(s->a, vmovlbq_s16(two));
            s->b = vaddq_s32(s->b, vmovltq_s16(two));
        }
    }
    for (; tap < count; ++tap, w += channels) {
        const int8_t *x = tap_at(at, tap, channel);
        if (channels == 16) {
            const int8x16_t inputs = vld1q_s8(x), weights = vld1q_s8(w);
            add_halves(s, vmullbq_int_s8(inputs, weights), vmulltq_int_s8(inputs, weights));
        } else if (channels == 8) {
            const int16x8_t one = eight_products(x, w);
            s->a = vaddq_s32(s->a, vmovlbq_s16(one));
            s->b = vaddq_s32(s->b, vmovltq_s16(one));
        } else {
            s->a = vaddq_s32(s->a, vmulq_s32(vldrbq_s32(x), vldrbq_s32(w)));
        }
    }
    return w;
}

/* Write the results of some channels. */
INLINED void write_channels(int8_t *to, int32_t channels, results_s8 *r, channel_sums s)
{
    s.a = scaled_with_biases(r, s.a);
    if (channels == 4) {
        write_four(to, r, s.a);
        return;
    }
    const int16_t zero = (int16_t)(r->doubled_zero >> 1);
    s.b = scaled_with_biases(r, s.b);
    int16x8_t even = vqaddq_n_s16(between(s.a, s.b), zero), odd = even;
    if (channels == 16) {
        s.c = scaled_with_biases(r, s.c);
        s.d = scaled_with_biases(r, s.d);
        odd = vqaddq_n_s16(between(s.c, s.d), zero);
    }
    if (r->low > -128 || r->high < 127) {
        const int16x8_t low = vdupq_n_s16((int16_t)r->low), high = vdupq_n_s16((int16_t)r->high);
        even = vminq_s16(vmaxq_s16(even, low), high);
        odd = vminq_s16(vmaxq_s16(odd, low), high);
    }
    const int8x16_t bytes = vqmovnbq_s16(vreinterpretq_s8_s16(even), even);
    if (channels == 16)
        vst1q_s8(to, vqmovntq_s16(bytes, odd));
    else
        vstrbq_s16(to, vreinterpretq_s16_s8(bytes));
}

/* Some channels of a pixel; returns the weights behind theirs. */
INLINED const int8_t *make_channels(int8_t *to, int32_t channels, const conv_layer *k,
                                    results_s8 *r, depthwise_window *at, int32_t channel,
                                    const int8_t *w)
{
    const int32x4_t none = vdupq_n_s32(0);
    const int32_t num_taps = k->kernel_y * k->kernel_x;
    channel_sums s = {none, none, none, none};
    int32_t rest = num_taps;
    for (; rest > MOST_TAPS; rest -= MOST_TAPS) {
        find_taps(at, k, num_taps - rest);
        w = add_taps(&s, channels, at, MOST_TAPS, channel, w);
    }
    if (num_taps > MOST_TAPS)
        find_taps(at, k, num_taps - rest);
    w = add_taps(&s, channels, at, rest, channel, w);
    write_channels(to + channel, channels, r, s);
    return w;
}

/* One pixel, whose first taps are found. */
static NOT_INLINED void depthwise_pixel(const conv_layer *k, depthwise_window *at, int8_t *to)
{
    const int8_t *w = (const int8_t *)k->filter;
    results_s8 r = results_of(k);
    int32_t channel = 0;
    for (; channel + 16 <= k->depth; channel += 16)
        w = make_channels(to, 16, k, &r, at, channel, w);
    if (channel + 8 <= k->depth) {
        w = make_channels(to, 8, k, &r, at, channel, w);
        channel += 8;
    }
    if (channel < k->depth)
        make_channels(to, 4, k, &r, at, channel, w);
}
#endif
