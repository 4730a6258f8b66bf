/* A pool of bytes by CMSIS-NN. */
typedef struct {
    cmsis_nn_pool_params params;
    cmsis_nn_dims in_dims, window_dims, out_dims;
    int32_t buffer_bytes;
} cmsis_pool;
