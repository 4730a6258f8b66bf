#include "kernel.h"
#include "rows.h"

/* Which of `count` elements, `depth` apart, is the largest, or with a sign of -1 the smallest:
   the first of them, or with `last` the last. Rows [first, end) of `depth` results. */
KERNEL arg_s8_64(int32_t count, int32_t depth, int32_t sign, int32_t last, in_rows in, out_rows out,
                 int32_t first, int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        const int8_t *from = (const int8_t *)in_row(in, y);
        int64_t *to = (int64_t *)(void *)out_row(out, y);
        for (int32_t c = 0; c < depth; ++c) {
            int32_t best = 0;
            for (int32_t i = 1; i < count; ++i) {
                const int8_t x = from[i * depth + c], z = from[best * depth + c];
                if ((sign > 0 ? x > z : x < z) || (last && !(x < z) && !(x > z)))
                    best = i;
            }
            to[c] = best;
        }
    }
}
