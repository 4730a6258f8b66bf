/* A convolution of bytes. Filters lie in blocks of four outputs, side by side. */
typedef struct {
    int32_t depth, out_depth;
    int16_t height, width, out_width, groups;
    int16_t kernel_y, kernel_x, stride_y, stride_x, dilation_y, dilation_x, top, left;
    int16_t in_offset, filter_offset, out_zero, low, high, factor_step;
    const int8_t *filter;
    const int32_t *bias;
    const int32_t *factors;
    const int8_t *shifts;
} conv_layer;
