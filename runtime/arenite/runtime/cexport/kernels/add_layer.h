/* Two tensors of integers, each with a factor, and a result with another. */
typedef struct {
    int32_t width, step_a, step_b, offset_a, offset_b;
    int32_t factor_a, shift_a, factor_b, shift_b, sign, factor, shift;
    int32_t out_zero, low, high;
} add_layer;
