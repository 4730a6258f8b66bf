/* Rows of a tensor: `stride` bytes apart or, where rows lie anywhere, at `offsets`. */
#if ROW_TABLES
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
