/* Kernels are kept apart from what calls them, so that their stacks do not add up. */
#if defined(__GNUC__)
#define NOT_INLINED __attribute__((noinline))
#else
#define NOT_INLINED
#endif
#define KERNEL static NOT_INLINED void

/* Rows of a tensor: `stride` bytes apart or, where rows lie anywhere, at `offsets`; of tensors of
   several sizes either. */
#if SIZED_ROWS
typedef struct {
    const uint8_t *base;
    const int32_t *offsets;
    int32_t stride;
} in_rows;

typedef struct {
    uint8_t *base;
    const int32_t *offsets;
    int32_t stride;
} out_rows;

static inline in_rows sized_in_rows(const uint8_t *base, const int32_t *offsets, int32_t stride)
{
    in_rows found;
    found.base = base;
    found.offsets = offsets;
    found.stride = stride;
    return found;
}

static inline out_rows sized_out_rows(uint8_t *base, const int32_t *offsets, int32_t stride)
{
    out_rows found;
    found.base = base;
    found.offsets = offsets;
    found.stride = stride;
    return found;
}

static inline const uint8_t *in_row(in_rows rows, int32_t index)
{
    return rows.base + (rows.offsets != NULL ? rows.offsets[index] : index * rows.stride);
}

static inline uint8_t *out_row(out_rows rows, int32_t index)
{
    return rows.base + (rows.offsets != NULL ? rows.offsets[index] : index * rows.stride);
}
#elif ROW_TABLES
typedef struct {
    const uint8_t *base;
    const int32_t *offsets;
} in_rows;

typedef struct {
    uint8_t *base;
    const int32_t *offsets;
} out_rows;

static inline in_rows in_rows_at(const uint8_t *base, const int32_t *offsets)
{
    in_rows found;
    found.base = base;
    found.offsets = offsets;
    return found;
}

static inline out_rows out_rows_at(uint8_t *base, const int32_t *offsets)
{
    out_rows found;
    found.base = base;
    found.offsets = offsets;
    return found;
}

static inline const uint8_t *in_row(in_rows rows, int32_t index)
{
    return rows.base + rows.offsets[index];
}

static inline uint8_t *out_row(out_rows rows, int32_t index)
{
    return rows.base + rows.offsets[index];
}
#else
typedef struct {
    const uint8_t *base;
    int32_t stride;
} in_rows;

typedef struct {
    uint8_t *base;
    int32_t stride;
} out_rows;

static inline in_rows IN_ROWS(const uint8_t *base, int32_t stride)
{
    in_rows found;
    found.base = base;
    found.stride = stride;
    return found;
}

static inline out_rows OUT_ROWS(uint8_t *base, int32_t stride)
{
    out_rows found;
    found.base = base;
    found.stride = stride;
    return found;
}

static inline const uint8_t *in_row(in_rows rows, int32_t index)
{
    return rows.base + index * rows.stride;
}

static inline uint8_t *out_row(out_rows rows, int32_t index)
{
    return rows.base + index * rows.stride;
}
#endif

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

/* Whether a place that a transposed window reaches is one of the `length` pixels it starts from,
   `stride` places apart. */
static inline int is_tap(int32_t place, int32_t stride, int32_t length)
{
    return place >= 0 && place % stride == 0 && place / stride < length;
}

/* Whether the processor multiplies to 32 bits only. A call of the compiler's library for 64 bits
   takes more than products of halves. */
#if defined(__XCHAL_HAVE_MUL32_HIGH)
#define HAS_SHORT_PRODUCTS (!__XCHAL_HAVE_MUL32_HIGH)
#elif defined(__XTENSA_CALL0_ABI__) || defined(__ARM_ARCH_6M__) || defined(__ARM_ARCH_8M_BASE__)
#define HAS_SHORT_PRODUCTS 1
#else
#define HAS_SHORT_PRODUCTS 0
#endif

#if HAS_SHORT_PRODUCTS
/* (a * b + half * 2^16) / 2^31 by products of halves, rounded down, for results that fit. */
static inline int32_t product_by_halves(int32_t a, int32_t b, int32_t half)
{
    const int32_t low_a = a & 0xffff, high_a = a >> 16, low_b = b & 0xffff, high_b = b >> 16;
    const int32_t low = (int32_t)((uint32_t)low_a * (uint32_t)low_b >> 16);
    const int32_t middle = high_a * low_b + low;
    const int32_t rest = low_a * high_b + (middle & 0xffff) + half;
    const uint32_t high = (uint32_t)(high_a * high_b) + (uint32_t)(middle >> 16);
    return (int32_t)(2 * high + (uint32_t)(rest >> 15));
}
#endif

/* sum * factor * 2^(shift - 31), rounded as TensorFlow Lite does. */
static inline int32_t requantised(int32_t sum, int32_t factor, int32_t shift)
{
#if SINGLE_ROUNDING
    return (int32_t)(((int64_t)sum * factor + ((int64_t)1 << (30 - shift))) >> (31 - shift));
#else
    const int32_t left = shift > 0 ? shift : 0;
    const int32_t right = left - shift;
    const int32_t half = (int32_t)((uint32_t)1 << right >> 1);
    const int32_t scaled = (int32_t)((uint32_t)sum << left);
#if HAS_SHORT_PRODUCTS
    const int32_t high = product_by_halves(scaled, factor, 1 << 14);
#else
    const int32_t high = (int32_t)(((int64_t)scaled * factor + (1 << 30)) >> 31);
#endif
    /* Halves away from zero. */
    return (high + half - (half > 0 && high < 0)) >> right;
#endif
}

/* The nearest integer, of two equally near the even one, within 2^22; NaN becomes the least. */
static inline int32_t nearest_even(float x)
{
    const float kept = x > -4194303.0f ? (x < 4194303.0f ? x : 4194303.0f) : -4194303.0f;
    const float moved = kept + 12582912.0f;
    return (int32_t)(moved - 12582912.0f);
}

static inline int32_t clamped(int32_t value, int32_t low, int32_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* A number within bounds; NaN stays. */
static inline float clamped_f32(float value, float low, float high)
{
    return value < low ? low : value > high ? high : value;
}

/* A float of its half: 5 bits of exponent, 10 behind the point. 2^112 makes up for the biases. */
static inline float half_of(uint16_t half)
{
    const uint32_t bits = (half & 0x7fffu) << 13 | (half & 0x8000u) << 16;
    float small;
    memcpy(&small, &bits, sizeof small);
    return small * 5.192296858534828e33f;
}

/* A float of its upper 16 bits; the others are 0. */
static inline float upper_of(uint16_t upper)
{
    const uint32_t bits = (uint32_t)upper << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
