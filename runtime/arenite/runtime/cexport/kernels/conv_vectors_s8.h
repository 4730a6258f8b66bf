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
   sums. Weights of an output are `apart` from those of the next, those of a row `run`. */
static inline void add_rows(four_outputs *s, const int8_t *const *rows, int32_t num_rows,
                            const int8_t *w, int32_t apart, int32_t count, int32_t run)
{
    const int8_t *v = w + apart, *u = v + apart, *t = u + apart;
    const int32_t left = run - ((count + 15) & ~15);
    for (const int8_t *const *const end = rows + num_rows; rows < end; ++rows) {
        const int8_t *x = *rows;
        __asm__(
            "wlstp.8 lr, %[count], 1f\n"
            "2:\n\t"
            "vldrb.8 q0, [%[x]], #16\n\t" TIMES_FOUR_OUTPUTS
            "letp lr, 2b\n"
            "1:"
            : [a] "+Te"(s->a), [b] "+Te"(s->b), [c] "+Te"(s->c), [d] "+Te"(s->d), [x] "+r"(x),
              [w] "+r"(w), [v] "+r"(v), [u] "+r"(u), [t] "+r"(t)
            : [count] "r"(count)
            : "q0", "q1", "lr", "memory");
        w += left;
        v += left;
        u += left;
        t += left;
    }
}

/* The same where all inputs are alike. */
static inline void add_alike(four_outputs *s, int8_t x, const int8_t *w, int32_t apart,
                             int32_t count)
{
    const int8_t *v = w + apart, *u = v + apart, *t = u + apart;
    __asm__(
        "vdup.8 q0, %[x]\n\t"
        "wlstp.8 lr, %[count], 1f\n"
        "2:\n\t" TIMES_FOUR_OUTPUTS
        "letp lr, 2b\n"
        "1:"
        : [a] "+Te"(s->a), [b] "+Te"(s->b), [c] "+Te"(s->c), [d] "+Te"(s->d), [w] "+r"(w),
          [v] "+r"(v), [u] "+r"(u), [t] "+r"(t)
        : [x] "r"(x), [count] "r"(count)
        : "q0", "q1", "lr", "memory");
}

/* Write the results of four outputs or of one, and return where the next ones go. */
static inline int8_t *finish_outputs(int8_t *to, const four_outputs *s, const conv_layer *k,
                                     results_s8 *r, int32_t outputs)
{
    if (outputs == 1) {
        *to = (int8_t)clamped(next_result(r, 2 * s->a), k->low, k->high);
    } else {
        int32x4_t sums = vdupq_n_s32(s->a);
        sums = vsetq_lane_s32(s->b, sums, 1);
        sums = vsetq_lane_s32(s->c, sums, 2);
        write_four(to, k, r, vsetq_lane_s32(s->d, sums, 3));
    }
    return to + outputs;
}

/* The results of a window whose inputs lie side by side. */
static inline int8_t *results_of_run(int8_t *to, const int8_t *x, const conv_layer *k, int32_t run)
{
    const int8_t *w = (const int8_t *)k->filter;
    results_s8 r = results_of(k);
    for (int32_t rest = k->out_depth, outputs = 4; rest > 0; rest -= outputs, w += outputs * run) {
        four_outputs s = {0, 0, 0, 0};
        outputs = rest < 4 ? 1 : 4;
        add_rows(&s, &x, 1, w, outputs == 1 ? 0 : run, run, run);
        to = finish_outputs(to, &s, k, &r, outputs);
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

#define MOST_GATHERED 64
#define MOST_ROWS 20

/* Add the products of the inputs of a window outside the image. */
static NOT_INLINED void add_outside(four_outputs *s, const conv_layer *k, const window_at *at,
                                    const int8_t *w, int32_t apart)
{
    const int32_t run = k->kernel_x * k->depth;
    const int8_t zero = (int8_t)-k->in_offset;
    add_alike(s, zero, w, apart, at->rows.first * run);
    for (int32_t row = at->rows.first; row < at->rows.end; ++row) {
        add_alike(s, zero, w + row * run, apart, at->before);
        add_alike(s, zero, w + row * run + at->behind, apart, run - at->behind);
    }
    add_alike(s, zero, w + at->rows.end * run, apart, (k->kernel_y - at->rows.end) * run);
}

/* The results of a window whose rows are read where they lie. */
static inline int8_t *results_of_rows(int8_t *to, const conv_layer *k, in_rows in,
                                      const window_at *at, int32_t run)
{
    const int32_t first = at->rows.first, num_rows = at->rows.end - first;
    const int32_t count = at->behind - at->before, window = k->kernel_y * run;
    const int8_t *w = (const int8_t *)k->filter;
    const int8_t *rows[MOST_ROWS];
    results_s8 r = results_of(k);
    for (int32_t row = 0; row < num_rows; ++row)
        rows[row] = window_row(k, in, at, first + row) + at->before;
    for (int32_t rest = k->out_depth, outputs = 4; rest > 0; rest -= outputs) {
        four_outputs s = {0, 0, 0, 0};
        outputs = rest < 4 ? 1 : 4;
        const int32_t apart = outputs == 1 ? 0 : window;
        add_rows(&s, rows, num_rows, w + first * run + at->before, apart, count, run);
        if (num_rows * count < window)
            add_outside(&s, k, at, w, apart);
        w += outputs * window;
        to = finish_outputs(to, &s, k, &r, outputs);
    }
    return to;
}

/* The results of a window; short rows of a small one are first put side by side. */
static inline int8_t *results_of_window(int8_t *to, const conv_layer *k, in_rows in,
                                        const window_at *at)
{
    const int32_t run = k->kernel_x * k->depth;
    if (run > 16 || k->kernel_y * run > MOST_GATHERED)
        return results_of_rows(to, k, in, at, run);
    int8_t gathered[MOST_GATHERED + 16];
    gather_window(gathered, k, in, at, run);
    return results_of_run(to, gathered, k, k->kernel_y * run);
}
#endif
