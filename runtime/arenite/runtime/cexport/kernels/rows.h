/* Rows of a tensor: `stride` bytes apart or, where rows lie anywhere, at `offsets`. */
typedef struct {
    const uint8_t *base;
    int32_t stride;
#if ROW_TABLES
    const int32_t *offsets;
#endif
} in_rows;

typedef struct {
    uint8_t *base;
    int32_t stride;
#if ROW_TABLES
    const int32_t *offsets;
#endif
} out_rows;

#if ROW_TABLES
#define IN_ROWS(base, stride) in_rows_at(base, stride, 0)
#define OUT_ROWS(base, stride) out_rows_at(base, stride, 0)

static inline in_rows in_rows_at(const uint8_t *base, int32_t stride, const int32_t *offsets)
{
    in_rows found;
    found.base = base;
    found.stride = stride;
    found.offsets = offsets;
    return found;
}

static inline out_rows out_rows_at(uint8_t *base, int32_t stride, const int32_t *offsets)
{
    out_rows found;
    found.base = base;
    found.stride = stride;
    found.offsets = offsets;
    return found;
}

static inline const uint8_t *in_row(in_rows rows, int32_t index)
{
    return rows.base + (rows.offsets ? rows.offsets[index] : index * rows.stride);
}

static inline uint8_t *out_row(out_rows rows, int32_t index)
{
    return rows.base + (rows.offsets ? rows.offsets[index] : index * rows.stride);
}
#else
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
