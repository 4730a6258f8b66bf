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
   without factors, sums; rows [first, end). `find` makes the products' sums of some outputs from
   one on, at most 32, and returns how many. */
static inline void add_to_sums(int32_t (*find)(int32_t *, const int8_t *, const conv_layer *,
                                               int32_t),
                               const conv_layer *k, const void *added, in_rows in, out_rows out,
                               int32_t first, int32_t end)
{
    const int32_t *before = (const int32_t *)added;
    int32_t sums[32];
    before += before != NULL ? first * k->out_width * k->out_depth : 0;
    for (int32_t y = first; y < end; ++y) {
        const int8_t *from = (const int8_t *)in_row(in, y);
        void *const row = out_row(out, y);
        int8_t *to = (int8_t *)row;
        int32_t *to_sum = (int32_t *)row;
        for (int32_t x = 0; x < k->out_width; ++x, from += k->depth) {
            int32_t count = 0;
            for (int32_t output = 0; output < k->out_depth; output += count) {
                const int32_t rest = k->out_depth - output;
                count = find(sums, from, k, output);
                for (int32_t i = 0; i < (count < rest ? count : rest); ++i) {
                    int32_t sum = k->bias[output + i] + sums[i];
                    sum += before != NULL ? *before++ : 0;
                    if (k->factors == NULL) {
                        *to_sum++ = sum;
                    } else {
                        sum = in_steps(k, sum, (output + i) * k->factor_step) + k->out_zero;
                        *to++ = (int8_t)clamped(sum, k->low, k->high);
                    }
                }
            }
        }
    }
}
