/* Rows and columns of an image for each of the result. Weights, of 10 fractional bits or floats,
   are those of the second of two; there are none where one is taken as it is. */
typedef struct {
    int32_t depth, out_width;
    const int16_t *row_low;
    const int16_t *row_high;
    const int16_t *column_low;
    const int16_t *column_high;
    const int16_t *row_weight;
    const int16_t *column_weight;
} resize_layer;
