#include "kernel.h"
#include "rows.h"
#include "THE_BLEND.h"

/* One for each of
   THE_KERNEL   | THE_LAYER        | AN_ELEMENT | A_WEIGHT | A_SUM   | ONE  | THE_BLEND
   bilinear_s8  | resize_layer     | int8_t     | int16_t  | int32_t | 1024 | blended_s8
   bilinear_f32 | resize_layer_f32 | float      | float    | float   | 1.0f | blended_f32 */

/* Rows and columns of an image for each of the result, and the weights of the second of two: of
   10 fractional bits, or floats. */
typedef struct {
    int32_t depth, out_width;
    const int16_t *row_low;
    const int16_t *row_high;
    const int16_t *column_low;
    const int16_t *column_high;
    const A_WEIGHT *row_weight;
    const A_WEIGHT *column_weight;
} THE_LAYER;

/* Blends of four pixels; rows [first, end) of the result. */
KERNEL THE_KERNEL(const THE_LAYER *k, in_rows in, out_rows out, int32_t first, int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        const AN_ELEMENT *above = (const AN_ELEMENT *)(const void *)in_row(in, k->row_low[y]);
        const AN_ELEMENT *below = (const AN_ELEMENT *)(const void *)in_row(in, k->row_high[y]);
        const A_SUM down = k->row_weight[y];
        AN_ELEMENT *to = (AN_ELEMENT *)(void *)out_row(out, y);
        for (int32_t x = 0; x < k->out_width; ++x) {
            const int32_t left = k->column_low[x] * k->depth;
            const int32_t right = k->column_high[x] * k->depth;
            const A_SUM across = k->column_weight[x];
            for (int32_t c = 0; c < k->depth; ++c)
                *to++ = THE_BLEND(
                    (above[left + c] * (ONE - across) + above[right + c] * across) * (ONE - down) +
                    (below[left + c] * (ONE - across) + below[right + c] * across) * down);
        }
    }
}
