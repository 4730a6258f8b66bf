/* A pool of windows. `lift` makes the sums of an average positive, or is 0. */
typedef struct {
    int32_t height, width, depth, out_width;
    int32_t kernel_y, kernel_x, stride_y, stride_x, top, left, lift, low, high;
} pool_layer;
