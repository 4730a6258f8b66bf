/* With RVV, weights of all channels lie side by side, those of a window one behind the other. 16
   bits hold the sum of two products. */
#if HAS_RVV
INLINED vint8m2_t bytes_at(const int8_t *at, size_t channels)
{
    return __riscv_vle8_v_i8m2(at, channels);
}

/* Add the products of taps that lie outside the image. */
INLINED vint32m8_t add_outside(vint32m8_t sums, int8_t x, const int8_t *w, int32_t count,
                               int32_t apart, size_t channels)
{
    for (; count > 0; --count, w += apart) {
        const vint16m4_t products = __riscv_vwmul_vx_i16m4(bytes_at(w, channels), x, channels);
        sums = __riscv_vwadd_wv_i32m8(sums, products, channels);
    }
    return sums;
}

/* Add the products of `count` taps, whose inputs are `step` apart. */
INLINED vint32m8_t add_taps(vint32m8_t sums, const int8_t *x, int32_t step, const int8_t *w,
                            int32_t count, int32_t apart, size_t n)
{
    for (; count > 0; --count, x += step, w += apart) {
        const vint16m4_t one = __riscv_vwmul_vv_i16m4(bytes_at(x, n), bytes_at(w, n), n);
        sums = __riscv_vwadd_wv_i32m8(sums, one, n);
    }
    return sums;
}

/* The same of three taps. */
INLINED vint32m8_t add_three_taps(vint32m8_t sums, const int8_t *x, int32_t step, const int8_t *w,
                                  int32_t apart, size_t n)
{
    const int8_t *const y = x + step, *const v = w + apart;
    const int8_t *const z = y + step, *const u = v + apart;
    vint16m4_t two = __riscv_vwmul_vv_i16m4(bytes_at(x, n), bytes_at(w, n), n);
    two = __riscv_vwmacc_vv_i16m4(two, bytes_at(y, n), bytes_at(v, n), n);
    const vint16m4_t one = __riscv_vwmul_vv_i16m4(bytes_at(z, n), bytes_at(u, n), n);
    return __riscv_vwadd_wv_i32m8(__riscv_vwadd_wv_i32m8(sums, two, n), one, n);
}

/* A row of the result. */
static inline void depthwise_row(const conv_layer *k, in_rows in, int8_t *to, int32_t y)
{
    const int32_t step = k->dilation_x * k->depth, width = k->kernel_x, apart = k->depth;
    const int8_t zero = (int8_t)-k->in_offset;
    const results_s8 r = results_of(k);
    window_at at = window_of_row(k, y);
    const int32_t first = at.rows.first, end = at.rows.end;
    for (int32_t x = 0; x < k->out_width; ++x, to += apart) {
        const int32_t left = x * k->stride_x - k->left;
        const taps columns = taps_inside(left, k->dilation_x, width, k->width);
        const int32_t before = columns.first < columns.end ? columns.first : 0;
        const int32_t behind = columns.first < columns.end ? columns.end : 0;
        size_t channels;
        at.left = left * apart;
        for (int32_t channel = 0; channel < apart; channel += (int32_t)channels) {
            channels = most_outputs(apart - channel);
            const int8_t *w = (const int8_t *)k->filter + channel;
            vint32m8_t sums = __riscv_vle32_v_i32m8(r.scales + channel, channels);
            sums = add_outside(sums, zero, w, first * width, apart, channels);
            w += first * width * apart;
            for (int32_t row = first; row < end; ++row, w += width * apart) {
                const int8_t *const from = window_row(k, in, &at, row) + channel;
                if (behind - before == 3 && width == 3) {
                    sums = add_three_taps(sums, from, step, w, apart, channels);
                    continue;
                }
                sums = add_outside(sums, zero, w, before, apart, channels);
                sums = add_taps(sums, from + before * step, step, w + before * apart,
                                behind - before, apart, channels);
                sums = add_outside(sums, zero, w + behind * apart, width - behind, apart, channels);
            }
            sums = add_outside(sums, zero, w, (k->kernel_y - end) * width, apart, channels);
            write_results(to + channel, &r, channel, sums, channels);
        }
    }
}
#endif
