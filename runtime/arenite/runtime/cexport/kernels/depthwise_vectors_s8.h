/* With vectors, weights of eight channels lie side by side, at the end perhaps of four. */
#if HAS_VECTORS
/* Eight products of bytes; 16 bits hold the sum of two. */
static inline int16x8_t eight_products(const int8_t *x, const int8_t *w)
{
    return vmulq_s16(vldrbq_s16(x), vldrbq_s16(w));
}

/* Add eight products to the sums of even and of odd channels. */
static inline void add_eight(int32x4x2_t *s, int16x8_t products)
{
    s->val[0] = vaddq_s32(s->val[0], vmovlbq_s16(products));
    s->val[1] = vaddq_s32(s->val[1], vmovltq_s16(products));
}

static inline const int8_t *tap_at(const int8_t *x, const int8_t *zeros, int is_inside)
{
    return is_inside ? x : zeros;
}

/* Eight channels of a pixel. */
static inline const int8_t *add_eights(int32x4x2_t *s, const conv_layer *k,
                                       const int8_t *const *from, taps columns, int32_t channel,
                                       const int8_t *w, const int8_t *zeros)
{
    const int32_t step = k->dilation_x * k->depth, width = k->kernel_x;
    for (const int8_t *const *row = from; row < from + k->kernel_y; ++row) {
        const int8_t *x = *row == NULL ? zeros : *row + channel;
        const int32_t apart = *row == NULL ? 0 : step;
        if (width == 3) {
            const int8_t *y = columns.end < 2 || columns.first > 1 ? zeros : x + apart;
            const int8_t *z = columns.end < 3 ? zeros : x + 2 * apart;
            x = columns.first > 0 ? zeros : x;
            add_eight(s, vaddq_s16(eight_products(x, w), eight_products(y, w + 8)));
            add_eight(s, eight_products(z, w + 16));
            w += 24;
            continue;
        }
        for (int32_t i = 0; i < width; ++i, x += apart, w += 8)
            add_eight(s, eight_products(i < columns.first || i >= columns.end ? zeros : x, w));
    }
    return w;
}

/* The last four channels of a pixel. */
static inline int32x4_t sums_of_four(const conv_layer *k, const int8_t *const *from, taps columns,
                                     int32_t channel, const int8_t *w, const int8_t *zeros)
{
    int32x4_t s = vdupq_n_s32(0);
    for (int32_t row = 0; row < k->kernel_y; ++row)
        for (int32_t i = 0; i < k->kernel_x; ++i, w += 4) {
            const int is_inside = from[row] != NULL && i >= columns.first && i < columns.end;
            const int8_t *x =
                is_inside ? from[row] + i * k->dilation_x * k->depth + channel : zeros;
            s = vaddq_s32(s, vmulq_s32(vldrbq_s32(x), vldrbq_s32(w)));
        }
    return s;
}

static NOT_INLINED void depthwise_pixel(const conv_layer *k, const int8_t *const *from,
                                        taps columns, int8_t *to)
{
    const int8_t zero = (int8_t)-k->in_offset;
    const int8_t zeros[8] = {zero, zero, zero, zero, zero, zero, zero, zero};
    const int8_t *w = (const int8_t *)k->filter;
    results_s8 r = results_of(k);
    int32_t channel = 0;
    for (; channel + 8 <= k->depth; channel += 8) {
        int32x4x2_t s = {{vdupq_n_s32(0), vdupq_n_s32(0)}};
        w = add_eights(&s, k, from, columns, channel, w, zeros);
        write_eight(to + channel, k, &r, s);
    }
    if (channel < k->depth)
        write_four(to + channel, k, &r, sums_of_four(k, from, columns, channel, w, zeros));
}
#endif
