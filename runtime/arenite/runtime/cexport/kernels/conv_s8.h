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
