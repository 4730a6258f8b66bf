#include "kernel.h"
#include "rows.h"

/* The largest of floats, for results [first, end), each of `rows` rows of `columns` pixels. */
KERNEL maximum_of_f32(int32_t rows, int32_t columns, int32_t depth, in_rows in, out_rows out,
                      int32_t first, int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        float *to = (float *)(void *)out_row(out, y);
        for (int32_t c = 0; c < depth; ++c) {
            float found = -FLT_MAX;
            for (int32_t row = 0; row < rows; ++row) {
                const float *from = (const float *)(const void *)in_row(in, y * rows + row) + c;
                for (int32_t i = 0; i < columns; ++i, from += depth)
                    found = *from > found ? *from : found;
            }
            to[c] = found;
        }
    }
}
