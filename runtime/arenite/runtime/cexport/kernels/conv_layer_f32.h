/* A convolution of floats. Filters lie in blocks of four outputs, side by side. */
typedef struct {
    int32_t height, width, depth;
    int32_t out_width, out_depth, groups;
    int32_t kernel_y, kernel_x, stride_y, stride_x, dilation_y, dilation_x, top, left;
    float low, high;
    const float *filter;
    const float *bias;
} conv_layer_f32;
