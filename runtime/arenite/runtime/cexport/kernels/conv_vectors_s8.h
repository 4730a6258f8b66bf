/* A window: its first row in the image, the rows and in each the inputs [before, behind) that lie
   in the image, and the bytes from the first pixel of a row to its own. */
typedef struct {
    taps rows;
    int32_t top, left, before, behind;
} window_at;

static inline const int8_t *window_row(const conv_layer *k, in_rows in, const window_at *at,
                                       int32_t row)
{
    return (const int8_t *)in_row(in, at->top + row * k->dilation_y) + at->left;
}

/* With vectors, weights of bytes are used as they are: those of an output side by side, in the
   order of the inputs of its window. */
#if HAS_VECTORS
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

/* Write the results of four outputs. */
static inline void finish_outputs(int8_t *to, const four_outputs *s, const conv_layer *k,
                                  results_s8 *r)
{
    int32x4_t sums;
    __asm__(
        "vmov %q0[2], %q0[0], %1, %3\n\t"
        "vmov %q0[3], %q0[1], %2, %4"
        : "=&w"(sums)
        : "r"(s->a), "r"(s->b), "r"(s->c), "r"(s->d));
    write_four(to, k, r, sums);
}

/* The result of the next output alone. */
static inline int8_t one_result(const four_outputs *s, const conv_layer *k, results_s8 *r)
{
    return (int8_t)clamped(next_result(r, 2 * s->a), k->low, k->high);
}

/* The results of a window whose inputs lie side by side. */
static NOT_INLINED int8_t *results_of_run(int8_t *to, const int8_t *x, const conv_layer *k,
                                          int32_t run)
{
    const int8_t *w = (const int8_t *)k->filter;
    int32_t rest = k->out_depth;
    results_s8 r = results_of(k);
    for (; rest >= 4; rest -= 4, w += 4 * run, to += 4) {
        four_outputs s = {0, 0, 0, 0};
        add_rows(&s, &x, 1, w, run, run, run);
        finish_outputs(to, &s, k, &r);
    }
    for (; rest > 0; --rest, w += run) {
        four_outputs s = {0, 0, 0, 0};
        add_rows(&s, &x, 1, w, 0, run, run);
        *to++ = one_result(&s, k, &r);
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
#define MOST_ROWS 5

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

/* The results of a window whose rows are read where they lie. */
static NOT_INLINED int8_t *results_of_rows(int8_t *to, const conv_layer *k, in_rows in,
                                           const window_at *at, int32_t run)
{
    const int32_t first = at->rows.first, num_rows = at->rows.end - first;
    const int32_t count = at->behind - at->before, window = k->kernel_y * run;
    const int8_t *w = (const int8_t *)k->filter;
    const int8_t *rows[MOST_ROWS];
    int32_t rest = k->out_depth;
    results_s8 r = results_of(k);
    for (int32_t row = 0; row < num_rows && num_rows <= MOST_ROWS; ++row)
        rows[row] = window_row(k, in, at, first + row) + at->before;
    for (; rest > 0;) {
        const int32_t apart = rest < 4 ? 0 : window;
        const int8_t *inside = w + first * run + at->before;
        four_outputs s = {0, 0, 0, 0};
        if (num_rows <= MOST_ROWS)
            add_rows(&s, rows, num_rows, inside, apart, count, run);
        if (num_rows > MOST_ROWS || num_rows * count < window) {
            four_outputs sums = s; /* In memory; the others are in registers. */
            if (num_rows > MOST_ROWS)
                add_tall(&sums, k, in, at, inside, apart);
            add_outside(&sums, k, at, w, apart);
            s = sums;
        }
        if (apart == 0) {
            *to++ = one_result(&s, k, &r);
            w += window;
            --rest;
        } else {
            finish_outputs(to, &s, k, &r);
            to += 4;
            w += 4 * window;
            rest -= 4;
        }
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
    return run <= 16 && k->kernel_y * run <= MOST_GATHERED
               ? results_of_short_rows(to, k, in, at, run)
               : results_of_rows(to, k, in, at, run);
}
#endif
