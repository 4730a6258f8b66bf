#include "kernel.h"
#include "rows.h"
#include "windows.h"
#include "clamp_f32.h"
#include "pool_layer_f32.h"

/* Averages of each window; rows [first, end) of the result. */
KERNEL average_pool_f32(const pool_layer_f32 *k, in_rows in, out_rows out, int32_t first,
                        int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        const int32_t top = y * k->stride_y - k->top;
        const taps rows = taps_inside(top, 1, k->kernel_y, k->height);
        float *to = (float *)(void *)out_row(out, y);
        for (int32_t x = 0; x < k->out_width; ++x) {
            const int32_t left = x * k->stride_x - k->left;
            const taps columns = taps_inside(left, 1, k->kernel_x, k->width);
            for (int32_t c = 0; c < k->depth; ++c) {
                float found = 0.0f;
                for (int32_t row = rows.first; row < rows.end; ++row) {
                    const float *from = (const float *)(const void *)in_row(in, top + row);
                    from += (left + columns.first) * k->depth + c;
                    for (int32_t i = columns.first; i < columns.end; ++i, from += k->depth)
                        found += *from;
                }
                *to++ = clamped_f32(
                    found / (float)((rows.end - rows.first) * (columns.end - columns.first)),
                    k->low, k->high);
            }
        }
    }
}
