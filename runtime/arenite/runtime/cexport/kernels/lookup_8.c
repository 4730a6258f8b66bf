#include "kernel.h"
#include "rows.h"

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
