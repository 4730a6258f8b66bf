/* A pool of windows of floats. */
typedef struct {
    int32_t height, width, depth, out_width;
    int32_t kernel_y, kernel_x, stride_y, stride_x, top, left;
    float low, high;
} pool_layer_f32;
