/* Two tensors of bytes, element by element; either may repeat along a row. */
typedef struct {
    int32_t width, step_a, step_b, low, high;
} pair_layer;
