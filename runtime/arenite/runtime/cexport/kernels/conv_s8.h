/* A convolution of bytes. */
typedef struct {
    int32_t depth, out_depth;
    int16_t height, width, out_width, groups;
    int16_t kernel_y, kernel_x, stride_y, stride_x, dilation_y, dilation_x, top, left;
    int16_t in_offset, filter_offset, out_zero, low, high, factor_step;
    const void *filter;
    const int32_t *bias;
    const void *factors;
    const int8_t *shifts;
} conv_layer;

/* A sum in steps of the result: by factors and shifts, or by factors that are floats. */
static inline int32_t in_steps(const conv_layer *k, int32_t sum, int32_t at)
{
    return HALVES_TO_EVEN ? nearest_even((float)sum * ((const float *)k->factors)[at])
                          : requantised(sum, ((const int32_t *)k->factors)[at], k->shifts[at]);
}

/* Add the products of pixels to sums of 32 bits, if there are some, and write results of bytes or,
   without factors, the sums; rows [first, end). `add` adds the products of a pixel to the sums of
   `count` outputs from one on. */
static inline void add_to_sums(void (*add)(int32_t *sums, const int8_t *x, const conv_layer *k,
                                           int32_t output, int32_t count),
                               const conv_layer *k, const void *added, in_rows in, out_rows out,
                               int32_t first, int32_t end)
{
    const int32_t *before = (const int32_t *)added;
    before += before != NULL ? first * k->out_width * k->out_depth : 0;
    for (int32_t y = first; y < end; ++y) {
        const int8_t *from = (const int8_t *)in_row(in, y);
        void *const row = out_row(out, y);
        int8_t *to = (int8_t *)row;
        int32_t *to_sum = (int32_t *)row;
        for (int32_t x = 0; x < k->out_width; ++x, from += k->depth) {
            int32_t sums[32], count = 0;
            for (int32_t output = 0; output < k->out_depth; output += count) {
                count = k->out_depth - output < 32 ? k->out_depth - output : 32;
                for (int32_t i = 0; i < count; ++i)
                    sums[i] = k->bias[output + i] + (before != NULL ? before[i] : 0);
                before += before != NULL ? count : 0;
                add(sums, from, k, output, count);
                for (int32_t i = 0; k->factors == NULL && i < count; ++i)
                    *to_sum++ = sums[i];
                for (int32_t i = 0; k->factors != NULL && i < count; ++i) {
                    const int32_t value = in_steps(k, sums[i], (output + i) * k->factor_step);
                    *to++ = (int8_t)clamped(value + k->out_zero, k->low, k->high);
                }
            }
        }
    }
}
