/* The taps of a window that lie inside the image, along one axis. */
typedef struct {
    int32_t first, end;
} taps;

static inline taps taps_inside(int32_t start, int32_t dilation, int32_t kernel, int32_t length)
{
    taps inside;
    inside.first = start < 0 ? (dilation - 1 - start) / dilation : 0;
    inside.end = start + (kernel - 1) * dilation < length ? kernel
                 : length > start ? (length - start + dilation - 1) / dilation
                                  : 0;
    return inside;
}
