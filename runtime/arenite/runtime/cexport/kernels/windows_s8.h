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

static inline window_at window_of_row(const conv_layer *k, int32_t y)
{
    window_at at;
    at.top = y * k->stride_y - k->top;
    at.rows = taps_inside(at.top, k->dilation_y, k->kernel_y, k->height);
    if (at.rows.first >= at.rows.end)
        at.rows.first = at.rows.end = 0;
    at.left = at.before = at.behind = 0;
    return at;
}

/* Move a window to where its columns begin. */
static inline void move_window(window_at *at, const conv_layer *k, int32_t left)
{
    const taps columns = taps_inside(left, 1, k->kernel_x, k->width);
    at->before = columns.first < columns.end ? columns.first * k->depth : 0;
    at->behind = columns.first < columns.end ? columns.end * k->depth : 0;
    at->left = left * k->depth;
}

/* A window: its rows, null for those outside the image, where it begins in them, the columns in the
   image, and with MVE some of its taps: those in the image at their first channel. */
#define MOST_TAPS 10
typedef struct {
    const int8_t *rows[8];
    int32_t left;
    taps columns;
#if HAS_MVE
    const int8_t *taps[MOST_TAPS];
    int8_t zeros[16];
#endif
} depthwise_window;
