#include "common.h"

/* Runs of bytes in up to four dimensions; steps in bytes. */
typedef struct {
    int32_t run, n0, n1, n2, n3;
    int32_t from0, from1, from2, from3;
    int32_t to0, to1, to2, to3;
} copy_layer;

KERNEL copy(const copy_layer *k, const uint8_t *from, uint8_t *to)
{
    for (int32_t a = 0; a < k->n0; ++a)
        for (int32_t b = 0; b < k->n1; ++b)
            for (int32_t c = 0; c < k->n2; ++c) {
                const uint8_t *source = from + a * k->from0 + b * k->from1 + c * k->from2;
                uint8_t *result = to + a * k->to0 + b * k->to1 + c * k->to2;
                for (int32_t d = 0; d < k->n3; ++d, source += k->from3, result += k->to3)
                    for (int32_t i = 0; i < k->run; ++i)
                        result[i] = source[i];
            }
}

/* Move rows of `run` bytes, side by side, to places `stride` bytes apart at or above their own:
   from the last byte to the first, so that each is read before it is overwritten. */
KERNEL spread(int32_t rows, int32_t run, int32_t stride, const uint8_t *from, uint8_t *to)
{
    for (int32_t y = rows - 1; y >= 0; --y)
        for (int32_t i = run - 1; i >= 0; --i)
            to[y * stride + i] = from[y * run + i];
}

/* Move `run` bytes of each row from `start` on to `place` in the same row; rows [first, end). */
KERNEL copy_rows(int32_t run, int32_t start, int32_t place, in_rows in, out_rows out, int32_t first,
                 int32_t end)
{
    for (int32_t y = first; y < end; ++y)
        for (int32_t i = 0; i < run; ++i)
            out_row(out, y)[place + i] = in_row(in, y)[start + i];
}

/* Repeat an element of `size` bytes over `bytes`. */
KERNEL fill(uint8_t *to, const uint8_t *element, int32_t size, int32_t bytes)
{
    for (int32_t i = 0, at = 0; i < bytes; ++i) {
        to[i] = element[at];
        at = at + 1 < size ? at + 1 : 0;
    }
}

/* A function of each byte, by a table of its 256 values; rows [first, end) of `width` bytes. */
KERNEL lookup_8(const uint8_t *table, int32_t width, in_rows in, out_rows out, int32_t first,
                int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        const uint8_t *from = in_row(in, y);
        uint8_t *to = out_row(out, y);
        for (int32_t i = 0; i < width; ++i)
            to[i] = table[from[i]];
    }
}

/* The nearest pixel of `pixel` bytes; rows [first, end) of the result. */
KERNEL nearest_8(const int16_t *row_low, const int16_t *column_low, int32_t pixel,
                 int32_t out_width, in_rows in, out_rows out, int32_t first, int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        const uint8_t *from = in_row(in, row_low[y]);
        uint8_t *to = out_row(out, y);
        for (int32_t x = 0; x < out_width; ++x)
            for (int32_t i = 0; i < pixel; ++i)
                *to++ = from[column_low[x] * pixel + i];
    }
}

/* Where the slices lie that a gather takes: of each row of indices `count`, of `size` bytes. Rows
   of indices take them from data that lie `apart` bytes apart, or 0 from the same. */
typedef struct {
    int32_t outer, length, count, size, apart;
} gather_layer;

/* Slices that have an index for each of several axes, whose elements are `length`, in batches. */
typedef struct {
    int32_t batches, outer, length, count, size, axes, n0, n1, n2, n3, n4, n5;
} gather_axes_layer;

/* Three tensors, element by element; each may repeat along a row. */
typedef struct {
    int32_t width, step_a, step_b, step_c;
} select_layer;

/* A sum of 20 fractional bits, halves away from zero. */
static inline int8_t blended_s8(int32_t sum)
{
    return (int8_t)((sum + (sum > 0 ? 1 << 19 : -(1 << 19))) / (1 << 20));
}

/* A sum as it is. */
static inline float blended_f32(float sum)
{
    return sum;
}

/* Rows and columns of an image for each of the result, and the weights of the second of two. */
typedef struct {
    int32_t depth, out_width, in_zero, out_zero;
    float in_scale, out_scale;
    const int16_t *row_low;
    const int16_t *row_high;
    const int16_t *column_low;
    const int16_t *column_high;
    const float *row_weight;
    const float *column_weight;
} resize_even_layer;

/* A byte of the result, halves to the even integer. */
static inline int8_t resized_s8(const resize_even_layer *k, float value)
{
    const float number = k->in_scale * (value - (float)k->in_zero);
    const int32_t steps = nearest_even(number / k->out_scale) + k->out_zero;
    return (int8_t)clamped(steps, -128, 127);
}

/* Images of several sizes: what the tables state beyond the last row or column is the last one. */
typedef struct {
    int32_t depth, out_width, last_row, last_column;
    const int16_t *row_low;
    const int16_t *row_high;
    const int16_t *column_low;
    const int16_t *column_high;
    const float *row_weight;
    const float *column_weight;
} resize_sizes_layer;

/* One for each column of
   THE_KERNEL | bilinear_even_s8     | bilinear_even_f32 | bilinear_sizes_f32
   THE_LAYER  | resize_even_layer    | resize_even_layer | resize_sizes_layer
   AN_ELEMENT | int8_t               | float             | float
   A_RESULT   | resized_s8(k, value) | value             | value
   ABOVE      | k->row_low[y]        | k->row_low[y]     | clamped(k->row_low[y], 0, k->last_row)
   BELOW      | k->row_high[y]       | k->row_high[y]    | clamped(k->row_high[y], 0, k->last_row)
   LEFT       | k->column_low[x]     | k->column_low[x]
              | clamped(k->column_low[x], 0, k->last_column)
   RIGHT      | k->column_high[x]    | k->column_high[x]
              | clamped(k->column_high[x], 0, k->last_column) */

/* Blends of four pixels as our runtime computes them; rows [first, end) of the result. */
KERNEL THE_KERNEL(const THE_LAYER *k, in_rows in, out_rows out, int32_t first, int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        const AN_ELEMENT *above = (const AN_ELEMENT *)(const void *)in_row(in, ABOVE);
        const AN_ELEMENT *below = (const AN_ELEMENT *)(const void *)in_row(in, BELOW);
        const float down = k->row_weight[y];
        AN_ELEMENT *to = (AN_ELEMENT *)(void *)out_row(out, y);
        for (int32_t x = 0; x < k->out_width; ++x) {
            const int32_t left = LEFT * k->depth, right = RIGHT * k->depth;
            const float across = k->column_weight[x];
            for (int32_t c = 0; c < k->depth; ++c) {
                const float a = above[left + c], b = below[left + c];
                const float top = a + across * ((float)above[right + c] - a);
                const float bottom = b + across * ((float)below[right + c] - b);
                const float value = top + down * (bottom - top);
                *to++ = A_RESULT;
            }
        }
    }
}

/* One for each of
   THE_KERNEL     | AN_INDEX
   gather_axes_32 | int32_t
   gather_axes_64 | int64_t */

/* Slices by their indices; one below 0 counts from the end, one out of range is clamped. */
KERNEL THE_KERNEL(const gather_axes_layer *k, const uint8_t *from, const uint8_t *indices,
                  uint8_t *to)
{
    const int32_t lengths[] = {k->n0, k->n1, k->n2, k->n3, k->n4, k->n5};
    const AN_INDEX *begun = (const AN_INDEX *)(const void *)indices;
    for (int32_t batch = 0; batch < k->batches; ++batch, begun += k->count * k->axes)
        for (int32_t row = 0; row < k->outer; ++row, from += k->length * k->size) {
            const AN_INDEX *index = begun;
            for (int32_t i = 0; i < k->count; ++i) {
                int32_t place = 0;
                for (int32_t axis = 0; axis < k->axes; ++axis, ++index) {
                    const int32_t length = lengths[axis];
                    const AN_INDEX wanted = *index < 0 ? *index + length : *index;
                    place = place * length + (wanted < 0         ? 0
                                              : wanted >= length ? length - 1
                                                                 : (int32_t)wanted);
                }
                for (int32_t c = 0; c < k->size; ++c)
                    *to++ = from[place * k->size + c];
            }
        }
}

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

/* One for each of
   THE_KERNEL | AN_INDEX
   gather_32  | int32_t
   gather_64  | int64_t */

/* Slices by their index; one below 0 counts from the end, one out of range is clamped. Rows
   [first, end) of indices. */
KERNEL THE_KERNEL(const gather_layer *k, const uint8_t *data, in_rows indices, out_rows out,
                  int32_t first, int32_t end)
{
    for (int32_t row = first; row < end; ++row) {
        const AN_INDEX *index = (const AN_INDEX *)(const void *)in_row(indices, row);
        const uint8_t *from = data + row * k->apart;
        uint8_t *to = out_row(out, row);
        for (int32_t part = 0; part < k->outer; ++part, from += k->length * k->size)
            for (int32_t i = 0; i < k->count; ++i) {
                const AN_INDEX wanted = index[i] < 0 ? index[i] + k->length : index[i];
                const int32_t place = wanted < 0            ? 0
                                      : wanted >= k->length ? k->length - 1
                                                            : (int32_t)wanted;
                for (int32_t c = 0; c < k->size; ++c)
                    *to++ = from[place * k->size + c];
            }
    }
}

/* One for each of
   THE_KERNEL | AN_ELEMENT
   select_8   | uint8_t
   select_16  | uint16_t
   select_32  | uint32_t
   select_64  | uint64_t */

/* Elements of one tensor where a condition is true, of another elsewhere; rows [first, end). */
KERNEL THE_KERNEL(const select_layer *k, in_rows conditions, in_rows one, in_rows other,
                  out_rows out, int32_t first, int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        const uint8_t *a = in_row(conditions, y);
        const AN_ELEMENT *b = (const AN_ELEMENT *)(const void *)in_row(one, y);
        const AN_ELEMENT *c = (const AN_ELEMENT *)(const void *)in_row(other, y);
        AN_ELEMENT *to = (AN_ELEMENT *)(void *)out_row(out, y);
        for (int32_t i = 0; i < k->width; ++i, a += k->step_a, b += k->step_b, c += k->step_c)
            to[i] = *a ? *b : *c;
    }
}
