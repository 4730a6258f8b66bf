#include "kernel.h"
#include "rows.h"

/* One for each of
   THE_KERNEL | ELEMENT | PLACE
   arg_f32_32 | float   | int32_t
   arg_f32_64 | float   | int64_t
   arg_s8_32  | int8_t  | int32_t
   arg_s8_64  | int8_t  | int64_t */

/* Which of `count` elements, `depth` apart, is the largest, or with a sign of -1 the smallest:
   the first of them, or with `last` the last. Rows [first, end) of `depth` results. */
KERNEL THE_KERNEL(int32_t count, int32_t depth, int32_t sign, int32_t last, in_rows in,
                  out_rows out, int32_t first, int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        const ELEMENT *from = (const ELEMENT *)(const void *)in_row(in, y);
        PLACE *to = (PLACE *)(void *)out_row(out, y);
        for (int32_t c = 0; c < depth; ++c) {
            int32_t best = 0;
            for (int32_t i = 1; i < count; ++i) {
                const ELEMENT x = from[i * depth + c], z = from[best * depth + c];
                if ((sign > 0 ? x > z : x < z) || (last && !(x < z) && !(x > z)))
                    best = i;
            }
            to[c] = best;
        }
    }
}
