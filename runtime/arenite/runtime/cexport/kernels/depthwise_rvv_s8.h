/* With RVV, weights of all channels lie side by side, those of a window one behind the other. 16
   bits hold the sum of two products. */
#if HAS_RVV
INLINED vint32m8_t add_products(vint32m8_t sums, vint16m4_t products, size_t channels)
{
    return __riscv_vwadd_wv_i32m8(sums, products, channels);
}

/* Add the products of taps that lie outside the image. */
INLINED vint32m8_t add_outside(vint32m8_t sums, int8_t x, const int8_t *w, int32_t count,
                               int32_t apart, size_t channels)
{
    for (; count > 0; --count, w += apart) {
        const vint8m2_t weights = __riscv_vle8_v_i8m2(w, channels);
        sums = add_products(sums, __riscv_vwmul_vx_i16m4(weights, x, channels), channels);
    }
    return sums;
}

/* Add the products of `count` taps, whose inputs are `step` apart. */
INLINED vint32m8_t add_taps(vint32m8_t sums, const int8_t *x, int32_t step, const int8_t *w,
                            int32_t count, int32_t apart, size_t channels)
{
    for (; count > 0; count -= 2, x += step, w += apart) {
        vint8m2_t inputs = __riscv_vle8_v_i8m2(x, channels);
        vint8m2_t weights = __riscv_vle8_v_i8m2(w, channels);
        vint16m4_t products = __riscv_vwmul_vv_i16m4(inputs, weights, channels);
        if (count > 1) {
            x += step;
            w += apart;
            inputs = __riscv_vle8_v_i8m2(x, channels);
            weights = __riscv_vle8_v_i8m2(w, channels);
            products = __riscv_vwmacc_vv_i16m4(products, inputs, weights, channels);
        }
        sums = add_products(sums, products, channels);
    }
    return sums;
}

/* One pixel. */
static NOT_INLINED void depthwise_pixel(const conv_layer *k, const depthwise_window *at, int8_t *to)
{
    const int32_t step = k->dilation_x * k->depth, width = k->kernel_x, apart = k->depth;
    const int8_t zero = (int8_t)-k->in_offset;
    results_s8 r = results_of(k);
    for (int32_t channel = 0; channel < k->depth;) {
        const size_t channels = most_outputs(k->depth - channel);
        const int8_t *w = (const int8_t *)k->filter + channel;
        vint32m8_t sums = __riscv_vle32_v_i32m8(r.scales, channels);
        for (int32_t row = 0; row < k->kernel_y; ++row) {
            const int8_t *const x = at->rows[row];
            const int is_inside = x != NULL && at->columns.first < at->columns.end;
            const int32_t first = is_inside ? at->columns.first : width;
            const int32_t end = is_inside ? at->columns.end : width;
            sums = add_outside(sums, zero, w, first, apart, channels);
            w += first * apart;
            if (first < end)
                sums = add_taps(sums, x + at->left + first * step + channel, step, w, end - first,
                                apart, channels);
            w += (end - first) * apart;
            sums = add_outside(sums, zero, w, width - end, apart, channels);
            w += (width - end) * apart;
        }
        write_results(to + channel, &r, sums, channels);
        channel += (int32_t)channels;
    }
}
#endif
