/* With MVE, weights of bytes are in the order of the inputs of a window. Where these come in
   whole vectors, those of four outputs for a vector lie side by side; else those of an output. */
#if HAS_MVE
#define MOST_ROWS 5

static inline int is_in_vectors(const conv_layer *k)
{
    return k->depth % 16 == 0 && k->kernel_y <= MOST_ROWS;
}

/* Products of a vector of inputs with the weights of four outputs, whose sums are in r0, r2, r4 and
   r6. */
#define VECTOR_TIMES_FOUR          \
    "vldrb.8 q1, [%[w]], #64\n\t"  \
    "vmladava.s8 r0, q0, q1\n\t"   \
    "vldrb.8 q1, [%[w], #-48]\n\t" \
    "vmladava.s8 r2, q0, q1\n\t"   \
    "vldrb.8 q1, [%[w], #-32]\n\t" \
    "vmladava.s8 r4, q0, q1\n\t"   \
    "vldrb.8 q1, [%[w], #-16]\n\t" \
    "vmladava.s8 r6, q0, q1\n\t"
#define BEGIN_FOUR "ldmia %[sums], {r0, r2, r4, r6}\n\t"
#define END_FOUR                                  \
    "vmov %q[found][2], %q[found][0], r0, r4\n\t" \
    "vmov %q[found][3], %q[found][1], r2, r6"

/* The next four sums of a run of inputs; `sums` is what they begin with. */
static inline int32x4_t four_of_run(const int8_t *x, int32_t vectors, const int8_t **weights,
                                    const int32_t *sums)
{
    const int8_t *w = *weights;
    int32x4_t found;
    __asm__(BEGIN_FOUR
            "dls lr, %[vectors]\n"
            "1:\n\t"
            "vldrb.8 q0, [%[x]], #16\n\t" VECTOR_TIMES_FOUR "le lr, 1b\n\t" END_FOUR
            : [found] "=&w"(found), [x] "+&r"(x), [w] "+&r"(w)
            : [vectors] "r"(vectors), [sums] "r"(sums)
            : "r0", "r2", "r4", "r6", "lr", "q0", "q1", "memory");
    *weights = w;
    return found;
}

/* The same of some rows; weights of a row are `left` behind those of the row before. */
static inline int32x4_t four_of_rows(const int8_t *const *rows, int32_t num_rows, int32_t vectors,
                                     const int8_t *w, int32_t left, const int32_t *sums)
{
    const int8_t *const *const end = rows + num_rows;
    int32x4_t found;
    __asm__(BEGIN_FOUR
            "1:\n\t"
            "ldr %[sums], [%[rows]], #4\n\t" /* Now it is where the inputs are. */
            "dls lr, %[vectors]\n"
            "2:\n\t"
            "vldrb.8 q0, [%[sums]], #16\n\t" VECTOR_TIMES_FOUR
            "le lr, 2b\n\t"
            "add %[w], %[left]\n\t"
            "cmp %[rows], %[end]\n\t"
            "bne 1b\n\t" END_FOUR
            : [found] "=&w"(found), [sums] "+&r"(sums), [w] "+&r"(w), [rows] "+&r"(rows)
            : [vectors] "r"(vectors), [left] "rI"(left), [end] "r"(end)
            : "r0", "r2", "r4", "r6", "lr", "q0", "q1", "cc", "memory");
    return found;
}

/* The same where all inputs are alike. */
static NOT_INLINED int32x4_t four_of_alike(int8_t input, int32_t num_rows, int32_t vectors,
                                           const int8_t *w, int32_t left, const int32_t *sums)
{
    int32x4_t found;
    __asm__(BEGIN_FOUR
            "vdup.8 q0, %[input]\n"
            "1:\n\t"
            "dls lr, %[vectors]\n"
            "2:\n\t" VECTOR_TIMES_FOUR
            "le lr, 2b\n\t"
            "add %[w], %[left]\n\t"
            "subs %[rows], #1\n\t"
            "bne 1b\n\t" END_FOUR
            : [found] "=&w"(found), [w] "+&r"(w), [rows] "+&r"(num_rows)
            : [vectors] "r"(vectors), [sums] "r"(sums), [left] "rI"(left), [input] "r"(input)
            : "r0", "r2", "r4", "r6", "lr", "q0", "q1", "cc", "memory");
    return found;
}

typedef struct {
    int32_t a, b, c, d;
} four_outputs;

/* A product with the weights of one of four outputs. */
#define TIMES_OUTPUT(w, sum) \
    "vldrb.8 q1, [%[" w      \
    "]], #16\n\t"            \
    "vmladava.s8 %[" sum "], q0, q1\n\t"
#define TIMES_FOUR_OUTPUTS \
    TIMES_OUTPUT("w", "a") \
    TIMES_OUTPUT("v", "b") \
    TIMES_OUTPUT("u", "c") \
    TIMES_OUTPUT("t", "d")

/* Add the products of `count` inputs of each of some rows with the weights of four outputs to their
   sums. Weights of an output are `apart` from those of the next, those of a row `run`. The loop
   takes most of the processor's registers, so its counter is given one. */
static inline void add_rows(four_outputs *s, const int8_t *const *rows, int32_t num_rows,
                            const int8_t *w, int32_t apart, int32_t count, int32_t run)
{
    const int8_t *v = w + apart, *u = v + apart, *t = u + apart;
    const int32_t left = run - ((count + 15) & ~15);
    const int8_t *const *const end = rows + num_rows;
    int32_t a = s->a, b = s->b, c = s->c, d = s->d;
    for (; rows < end; ++rows) {
        const int8_t *x = *rows;
        register int32_t inputs __asm__("lr") = count;
        __asm__(
            "wlstp.8 lr, lr, 1f\n"
            "2:\n\t"
            "vldrb.8 q0, [%[x]], #16\n\t" TIMES_FOUR_OUTPUTS
            "letp lr, 2b\n"
            "1:"
            : [a] "+Te"(a), [b] "+Te"(b), [c] "+Te"(c), [d] "+Te"(d), [x] "+r"(x), [w] "+r"(w),
              [v] "+r"(v), [u] "+r"(u), [t] "+r"(t), "+r"(inputs)
            :
            : "q0", "q1", "memory");
        w += left;
        v += left;
        u += left;
        t += left;
    }
    s->a = a;
    s->b = b;
    s->c = c;
    s->d = d;
}

/* The same where all inputs are alike. */
static NOT_INLINED void add_alike(four_outputs *s, int8_t x, int32_t num_rows, const int8_t *w,
                                  int32_t apart, int32_t count, int32_t run)
{
    int32_t a = s->a, b = s->b, c = s->c, d = s->d;
    for (; num_rows > 0; --num_rows, w += run) {
        const int8_t *e = w, *f = w + apart, *g = f + apart, *h = g + apart;
        register int32_t inputs __asm__("lr") = count;
        __asm__(
            "vdup.8 q0, %[x]\n\t"
            "wlstp.8 lr, lr, 1f\n"
            "2:\n\t" TIMES_FOUR_OUTPUTS
            "letp lr, 2b\n"
            "1:"
            : [a] "+Te"(a), [b] "+Te"(b), [c] "+Te"(c), [d] "+Te"(d), [w] "+r"(e), [v] "+r"(f),
              [u] "+r"(g), [t] "+r"(h), "+r"(inputs)
            : [x] "r"(x)
            : "q0", "q1", "memory");
    }
    s->a = a;
    s->b = b;
    s->c = c;
    s->d = d;
}

/* The biases of the next four outputs, or of one. */
static inline four_outputs biases_of(const results_s8 *r, int32_t outputs)
{
    four_outputs s;
    s.a = r->scales[0];
    s.b = s.c = s.d = 0;
    if (outputs == 4) {
        s.b = r->scales[1];
        s.c = r->scales[2];
        s.d = r->scales[3];
    }
    return s;
}

/* Write the results of the next four outputs, or of one, and return where the others belong. */
static inline int8_t *finish_outputs(int8_t *to, const four_outputs *s, results_s8 *r,
                                     int32_t outputs)
{
    if (outputs == 4) {
        int32x4_t sums;
        __asm__(
            "vmov %q0[2], %q0[0], %1, %3\n\t"
            "vmov %q0[3], %q0[1], %2, %4"
            : "=&w"(sums)
            : "r"(s->a), "r"(s->b), "r"(s->c), "r"(s->d));
        write_four(to, r, scaled_four(r, sums));
        return to + 4;
    }
    const int32_t shift = HALVES_TO_EVEN ? 0 : ~*r->shifts++;
    const int32_t doubled = doubled_result(2 * s->a, r->scales[1], shift);
    r->scales += 2;
    *to = (int8_t)clamped(saturated_half(doubled + r->doubled_zero), r->low, r->high);
    return to + 1;
}

/* The results of a window whose inputs lie side by side. */
static NOT_INLINED int8_t *results_of_run(int8_t *to, const int8_t *x, const conv_layer *k,
                                          int32_t run)
{
    const int8_t *w = (const int8_t *)k->filter;
    int32_t rest = k->out_depth;
    results_s8 r = results_of(k);
    if (is_in_vectors(k))
        for (; rest >= 4; rest -= 4, to += 4) {
            const int32x4_t sums = four_of_run(x, run / 16, &w, r.scales);
            write_four(to, &r, scaled_four(&r, sums));
        }
    while (rest > 0) {
        const int32_t outputs = rest < 4 ? 1 : 4;
        four_outputs s = biases_of(&r, outputs);
        add_rows(&s, &x, 1, w, rest < 4 ? 0 : run, run, run);
        to = finish_outputs(to, &s, &r, outputs);
        w += outputs * run;
        rest -= outputs;
    }
    return to;
}

/* Write the inputs of a window of short rows side by side, up to 16 beyond. */
static inline void gather_window(int8_t *to, const conv_layer *k, in_rows in, const window_at *at,
                                 int32_t run)
{
    const int8x16_t zeros = vdupq_n_s8((int8_t)-k->in_offset);
    const mve_pred16_t outside = vctp8q((uint32_t)at->before);
    const mve_pred16_t inside = vctp8q((uint32_t)at->behind) & (mve_pred16_t)~outside;
    for (int32_t row = 0; row < k->kernel_y; ++row, to += run) {
        int8x16_t inputs = zeros;
        if (row >= at->rows.first && row < at->rows.end) {
            inputs = vldrbq_z_s8(window_row(k, in, at, row), inside);
            inputs = vpselq_s8(inputs, zeros, inside);
        }
        vstrbq_s8(to, inputs);
    }
}

#define MOST_GATHERED 48

/* Add the products of the inputs of a window outside the image. */
static inline void add_outside(four_outputs *s, const conv_layer *k, const window_at *at,
                               const int8_t *w, int32_t apart)
{
    const int32_t run = k->kernel_x * k->depth, first = at->rows.first, end = at->rows.end;
    const int8_t zero = (int8_t)-k->in_offset;
    if (first > 0)
        add_alike(s, zero, first, w, apart, run, run);
    if (at->before > 0)
        add_alike(s, zero, end - first, w + first * run, apart, at->before, run);
    if (at->behind < run)
        add_alike(s, zero, end - first, w + first * run + at->behind, apart, run - at->behind, run);
    if (end < k->kernel_y)
        add_alike(s, zero, k->kernel_y - end, w + end * run, apart, run, run);
}

/* The sums of the next four outputs of a window that is partly outside the image. */
static NOT_INLINED int32x4_t four_of_border(const conv_layer *k, const window_at *at,
                                            const int8_t *const *rows, const int8_t *w,
                                            const int32_t *biases)
{
    const int32_t run = k->kernel_x * k->depth, window = k->kernel_y * run;
    const int32_t count = at->behind - at->before, first = at->rows.first * run;
    const int32_t num_rows = at->rows.end - at->rows.first, behind = at->rows.end * run;
    const int8_t zero = (int8_t)-k->in_offset;
    int32_t sums[4];
    if (num_rows * count == 0)
        return four_of_alike(zero, 1, window / 16, w, 0, biases);
    vst1q_s32(sums, vld1q_s32(biases));
    if (first > 0)
        vst1q_s32(sums, four_of_alike(zero, 1, first / 16, w, 0, sums));
    if (behind < window)
        vst1q_s32(sums, four_of_alike(zero, 1, (window - behind) / 16, w + 4 * behind, 0, sums));
    w += 4 * first;
    if (at->before > 0)
        vst1q_s32(sums,
                  four_of_alike(zero, num_rows, at->before / 16, w, 4 * (run - at->before), sums));
    if (at->behind < run)
        vst1q_s32(sums, four_of_alike(zero, num_rows, (run - at->behind) / 16, w + 4 * at->behind,
                                      4 * at->behind, sums));
    return four_of_rows(rows, num_rows, count / 16, w + 4 * at->before, 4 * (run - count), sums);
}

/* Add the products of the rows of a tall window. */
static NOT_INLINED void add_tall(four_outputs *s, const conv_layer *k, in_rows in,
                                 const window_at *at, const int8_t *w, int32_t apart)
{
    const int32_t run = k->kernel_x * k->depth;
    for (int32_t row = at->rows.first; row < at->rows.end; ++row, w += run) {
        const int8_t *x = window_row(k, in, at, row) + at->before;
        add_rows(s, &x, 1, w, apart, at->behind - at->before, run);
    }
}

/* The results of a window whose inputs come in whole vectors. */
static NOT_INLINED int8_t *results_in_vectors(int8_t *to, const conv_layer *k, in_rows in,
                                              const window_at *at, int32_t run)
{
    const int32_t num_rows = at->rows.end - at->rows.first;
    const int is_whole = num_rows * (at->behind - at->before) == k->kernel_y * run;
    const int8_t *w = (const int8_t *)k->filter;
    const int8_t *rows[MOST_ROWS];
    results_s8 r = results_of(k);
    for (int32_t row = 0; row < num_rows; ++row)
        rows[row] = window_row(k, in, at, at->rows.first + row) + at->before;
    for (int32_t rest = k->out_depth; rest >= 4; rest -= 4, to += 4, w += 4 * k->kernel_y * run) {
        const int32x4_t sums = is_whole ? four_of_rows(rows, num_rows, run / 16, w, 0, r.scales)
                                        : four_of_border(k, at, rows, w, r.scales);
        write_four(to, &r, scaled_four(&r, sums));
    }
    return to;
}

/* The results of a window whose rows are read where they lie, from an output on. */
static NOT_INLINED int8_t *results_of_rows(int8_t *to, const conv_layer *k, in_rows in,
                                           const window_at *at, int32_t output)
{
    const int32_t run = k->kernel_x * k->depth, window = k->kernel_y * run;
    const int32_t first = at->rows.first, num_rows = at->rows.end - first;
    const int32_t count = at->behind - at->before;
    const int8_t *w = (const int8_t *)k->filter + output * window;
    const int8_t *rows[MOST_ROWS];
    int32_t rest = k->out_depth - output;
    results_s8 r = results_from(k, output);
    for (int32_t row = 0; row < num_rows && num_rows <= MOST_ROWS; ++row)
        rows[row] = window_row(k, in, at, first + row) + at->before;
    while (rest > 0) {
        const int32_t outputs = rest < 4 ? 1 : 4, apart = rest < 4 ? 0 : window;
        const int8_t *inside = w + first * run + at->before;
        four_outputs s = biases_of(&r, outputs);
        if (num_rows <= MOST_ROWS)
            add_rows(&s, rows, num_rows, inside, apart, count, run);
        if (num_rows > MOST_ROWS || num_rows * count < window) {
            four_outputs sums = s; /* In memory; the others are in registers. */
            if (num_rows > MOST_ROWS)
                add_tall(&sums, k, in, at, inside, apart);
            add_outside(&sums, k, at, w, apart);
            s = sums;
        }
        to = finish_outputs(to, &s, &r, outputs);
        w += outputs * window;
        rest -= outputs;
    }
    return to;
}

/* The results of a window whose rows are short: they are first put side by side. */
static NOT_INLINED int8_t *results_of_short_rows(int8_t *to, const conv_layer *k, in_rows in,
                                                 const window_at *at, int32_t run)
{
    int8_t gathered[MOST_GATHERED + 16];
    gather_window(gathered, k, in, at, run);
    return results_of_run(to, gathered, k, k->kernel_y * run);
}

static inline int8_t *results_of_window(int8_t *to, const conv_layer *k, in_rows in,
                                        const window_at *at)
{
    const int32_t run = k->kernel_x * k->depth;
    int32_t output = 0;
    if (run <= 16 && k->kernel_y * run <= MOST_GATHERED)
        return results_of_short_rows(to, k, in, at, run);
    if (is_in_vectors(k)) {
        to = results_in_vectors(to, k, in, at, run);
        output = k->out_depth & ~3;
    }
    return output < k->out_depth ? results_of_rows(to, k, in, at, output) : to;
}
#endif

#if HAS_MVE
/* Add the products of a run to the sums of some outputs. */
static inline void add_products(int32_t *sums, const int8_t *x, const conv_layer *k, int32_t output,
                                int32_t count)
{
    const int32_t run = k->depth;
    const int8_t *w = (const int8_t *)k->filter + output * run;
    if (is_in_vectors(k))
        for (; count >= 4; count -= 4, sums += 4)
            vst1q_s32(sums, four_of_run(x, run / 16, &w, sums));
    for (; count > 0; --count, ++sums, w += run) {
        four_outputs s;
        s.a = *sums;
        s.b = s.c = s.d = 0;
        add_rows(&s, &x, 1, w, 0, run, run);
        *sums = s.a;
    }
}
#endif
