/* Each result is made of `rows` rows of `columns` pixels; `depth` results a pixel. */
typedef struct {
    int32_t rows, columns, depth, offset, factor, shift, zero;
} reduce_layer;
