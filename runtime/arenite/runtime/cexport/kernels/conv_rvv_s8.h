/* With RVV, weights are bytes: those of all outputs for an input of a window side by side. A vector
   holds the sums of as many outputs as the processor has room for. */
#if HAS_RVV
/* Add the products of an input with the weights of some outputs to their sums. */
INLINED vint32m8_t add_input(vint32m8_t sums, int8_t x, const int8_t *w, size_t outputs)
{
    const vint16m4_t weights = __riscv_vsext_vf2_i16m4(__riscv_vle8_v_i8m2(w, outputs), outputs);
    return __riscv_vwmacc_vx_i32m8(sums, x, weights, outputs);
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

/* The results of a window whose inputs lie side by side. */
static NOT_INLINED int8_t *results_of_run(int8_t *to, const int8_t *x, const conv_layer *k,
                                          int32_t run)
{
    const int8_t *w = (const int8_t *)k->filter;
    results_s8 r = results_of(k);
    for (int32_t rest = k->out_depth; rest > 0;) {
        const size_t outputs = most_outputs(rest);
        vint32m8_t sums = __riscv_vle32_v_i32m8(r.scales, outputs);
        sums = add_inputs(sums, x, w, run, k->out_depth, outputs);
        write_results(to, &r, sums, outputs);
        to += outputs;
        w += outputs;
        rest -= (int32_t)outputs;
    }
    return to;
}

/* The results of a window, of whose rows the inputs [before, behind) lie in the image. */
static NOT_INLINED int8_t *results_of_window(int8_t *to, const conv_layer *k, in_rows in,
                                             const window_at *at)
{
    const int32_t run = k->kernel_x * k->depth, apart = k->out_depth;
    const int8_t zero = (int8_t)-k->in_offset;
    results_s8 r = results_of(k);
    for (int32_t output = 0; output < k->out_depth;) {
        const size_t outputs = most_outputs(k->out_depth - output);
        const int8_t *w = (const int8_t *)k->filter + output;
        vint32m8_t sums = __riscv_vle32_v_i32m8(r.scales, outputs);
        for (int32_t row = 0; row < k->kernel_y; ++row) {
            const int is_inside = row >= at->rows.first && row < at->rows.end;
            const int32_t before = is_inside ? at->before : run;
            const int32_t behind = is_inside ? at->behind : run;
            sums = add_alike(sums, zero, w, before, apart, outputs);
            w += before * apart;
            if (before < behind)
                sums = add_inputs(sums, window_row(k, in, at, row) + before, w, behind - before,
                                  apart, outputs);
            w += (behind - before) * apart;
            sums = add_alike(sums, zero, w, run - behind, apart, outputs);
            w += (run - behind) * apart;
        }
        write_results(to + output, &r, sums, outputs);
        output += (int32_t)outputs;
    }
    return to + k->out_depth;
}
#endif
