#include "kernel.h"
#include "rows.h"

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
