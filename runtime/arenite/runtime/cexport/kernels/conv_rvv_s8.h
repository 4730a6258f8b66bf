/* With RVV, weights are bytes: those of all outputs for an input of a window side by side. A vector
   holds the sums of as many outputs as the processor has room for, and an instruction multiplies
   one input by their weights. Those of two pixels are read together. */
#if HAS_RVV
/* Most outputs of which the results of a pixel are kept until all of the pixel before are written,
   which may lie where its inputs do. */
#define MOST_KEPT 128

INLINED vint16m4_t weights_at(const int8_t *w, size_t outputs)
{
    return __riscv_vsext_vf2_i16m4(__riscv_vle8_v_i8m2(w, outputs), outputs);
}

/* Add the products of an input with the weights of some outputs to their sums. */
INLINED vint32m8_t add_input(vint32m8_t sums, int8_t x, const int8_t *w, size_t outputs)
{
    return __riscv_vwmacc_vx_i32m8(sums, x, weights_at(w, outputs), outputs);
}

/* The same of `count` inputs; weights of an input are `apart` from those of the next. */
INLINED vint32m8_t add_inputs(vint32m8_t sums, const int8_t *x, const int8_t *w, int32_t count,
                              int32_t apart, size_t outputs)
{
    for (; count >= 4; count -= 4, x += 4, w += apart) {
        sums = add_input(sums, x[0], w, outputs);
        sums = add_input(sums, x[1], w += apart, outputs);
        sums = add_input(sums, x[2], w += apart, outputs);
        sums = add_input(sums, x[3], w += apart, outputs);
    }
    for (; count > 0; --count, ++x, w += apart)
        sums = add_input(sums, *x, w, outputs);
    return sums;
}

/* The same where all inputs are alike. */
INLINED vint32m8_t add_alike(vint32m8_t sums, int8_t x, const int8_t *w, int32_t count,
                             int32_t apart, size_t outputs)
{
    for (; count > 0; --count, w += apart)
        sums = add_input(sums, x, w, outputs);
    return sums;
}

INLINED void add_input_of_two(vint32m8_t *one, vint32m8_t *other, int8_t x, int8_t z,
                              const int8_t *w, size_t outputs)
{
    const vint16m4_t weights = weights_at(w, outputs);
    *one = __riscv_vwmacc_vx_i32m8(*one, x, weights, outputs);
    *other = __riscv_vwmacc_vx_i32m8(*other, z, weights, outputs);
}

/* The same with inputs of two pixels. */
INLINED void add_inputs_of_two(vint32m8_t *one, vint32m8_t *other, const int8_t *x, const int8_t *z,
                               const int8_t *w, int32_t count, int32_t apart, size_t outputs)
{
    for (; count >= 4; count -= 4, x += 4, z += 4, w += apart) {
        add_input_of_two(one, other, x[0], z[0], w, outputs);
        add_input_of_two(one, other, x[1], z[1], w += apart, outputs);
        add_input_of_two(one, other, x[2], z[2], w += apart, outputs);
        add_input_of_two(one, other, x[3], z[3], w += apart, outputs);
    }
    for (; count > 0; --count, w += apart)
        add_input_of_two(one, other, *x++, *z++, w, outputs);
}

/* The results of a window, of whose rows the inputs [before, behind) lie in the image, and where
   `is_two` those of the next one, of which all columns do. */
static NOT_INLINED int8_t *results_of_windows(int8_t *to, const conv_layer *k, in_rows in,
                                              const window_at *at, int is_two)
{
    const int32_t run = k->kernel_x * k->depth, apart = k->out_depth;
    const int32_t first = at->rows.first, end = at->rows.end, step = k->stride_x * k->depth;
    const int8_t zero = (int8_t)-k->in_offset;
    const results_s8 r = results_of(k);
    int8_t kept[MOST_KEPT];
    size_t outputs;
    for (int32_t output = 0; output < apart; output += (int32_t)outputs) {
        outputs = most_outputs(apart - output);
        const int8_t *w = (const int8_t *)k->filter + output;
        vint32m8_t sums = __riscv_vle32_v_i32m8(r.scales + output, outputs);
        sums = add_alike(sums, zero, w, first * run, apart, outputs);
        w += first * run * apart;
        sums = add_alike(sums, zero, w + (end - first) * run * apart, (k->kernel_y - end) * run,
                         apart, outputs);
        if (is_two) {
            vint32m8_t other = sums;
            for (int32_t row = first; row < end; ++row, w += run * apart) {
                const int8_t *const x = window_row(k, in, at, row);
                add_inputs_of_two(&sums, &other, x, x + step, w, run, apart, outputs);
            }
            write_results(kept + output, &r, output, other, outputs);
        } else {
            for (int32_t row = first; row < end; ++row, w += run * apart) {
                const int32_t before = at->before, behind = at->behind;
                sums = add_alike(sums, zero, w, before, apart, outputs);
                sums = add_inputs(sums, window_row(k, in, at, row) + before, w + before * apart,
                                  behind - before, apart, outputs);
                sums = add_alike(sums, zero, w + behind * apart, run - behind, apart, outputs);
            }
        }
        write_results(to + output, &r, output, sums, outputs);
    }
    to += apart;
    if (!is_two)
        return to;
    for (int32_t output = 0; output < apart; output += (int32_t)outputs) {
        outputs = __riscv_vsetvl_e8m8((size_t)(apart - output));
        __riscv_vse8_v_i8m8(to + output, __riscv_vle8_v_i8m8(kept + output, outputs), outputs);
    }
    return to + apart;
}

/* Rows [first, end) of the result. */
static NOT_INLINED void results_of_rows(const conv_layer *k, in_rows in, out_rows out,
                                        int32_t first, int32_t end)
{
    const int32_t last = k->width - k->kernel_x - k->stride_x;
    for (int32_t y = first; y < end; ++y) {
        window_at at = window_of_row(k, y);
        int8_t *to = (int8_t *)out_row(out, y);
        for (int32_t x = 0; x < k->out_width; ++x) {
            const int32_t left = x * k->stride_x - k->left;
            const int is_two =
                left >= 0 && left <= last && x + 1 < k->out_width && k->out_depth <= MOST_KEPT;
            move_window(&at, k, left);
            to = results_of_windows(to, k, in, &at, is_two);
            x += is_two;
        }
    }
}
#endif

#if HAS_RVV
/* Add the products of a run to the sums of some outputs. */
static inline void add_products(int32_t *sums, const int8_t *x, const conv_layer *k, int32_t output,
                                int32_t count)
{
    const int8_t *w = (const int8_t *)k->filter + output;
    while (count > 0) {
        const size_t outputs = __riscv_vsetvl_e8m2((size_t)count);
        const vint32m8_t begun = __riscv_vle32_v_i32m8(sums, outputs);
        __riscv_vse32_v_i32m8(sums, add_inputs(begun, x, w, k->depth, k->out_depth, outputs),
                              outputs);
        sums += outputs;
        w += outputs;
        count -= (int32_t)outputs;
    }
}
#endif
