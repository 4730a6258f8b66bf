#include "kernel.h"
#include "rows.h"

/* One for each of
   THE_KERNEL     | ORDER | START    | WHAT
   maximum_of_f32 | >     | -FLT_MAX | largest
   minimum_of_f32 | <     | FLT_MAX  | smallest */

/* The WHAT of floats, for results [first, end), each of `rows` rows of `columns` pixels. */
KERNEL THE_KERNEL(int32_t rows, int32_t columns, int32_t depth, in_rows in, out_rows out,
                  int32_t first, int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        float *to = (float *)(void *)out_row(out, y);
        for (int32_t c = 0; c < depth; ++c) {
            float found = START;
            for (int32_t row = 0; row < rows; ++row) {
                const float *from = (const float *)(const void *)in_row(in, y * rows + row) + c;
                for (int32_t i = 0; i < columns; ++i, from += depth)
                    found = *from ORDER found ? *from : found;
            }
            to[c] = found;
        }
    }
}
