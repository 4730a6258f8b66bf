/* Two tensors of floats, element by element; either may repeat along a row. */
typedef struct {
    int32_t width, step_a, step_b;
    float low, high;
} binary_layer_f32;
