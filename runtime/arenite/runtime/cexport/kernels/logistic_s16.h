/* Functions of numbers with 12 bits behind the point, three times as large; the results have 15.
   The table has the logistic function at multiples of 1/24, of 16 bits behind the point, and lines
   run between them. */
static int16_t logistic16(const uint16_t *table, int32_t x)
{
    const uint32_t size = (uint32_t)(x < 0 ? -x : x), place = size >> 9;
    uint32_t y = 0x7fffu << 10;
    if (place < 255)
        y = ((uint32_t)table[place] << 9) +
            (size & 511u) * ((uint32_t)table[place + 1] - (uint32_t)table[place]);
    return (int16_t)((x < 0 ? (1u << 25) - y + (1u << 9) - 1u : y + (1u << 9)) >> 10);
}

/* tanh(x), as 2 / (1 + exp(-2 x)) - 1. */
static int16_t tanh16(const uint16_t *table, int32_t x)
{
    const uint32_t size = (uint32_t)(x < 0 ? -x : x), place = size >> 8;
    int32_t y = 0xffff << 8;
    if (place < 255)
        y = (int32_t)(((uint32_t)table[place] << 8) +
                      (size & 255u) * ((uint32_t)table[place + 1] - (uint32_t)table[place]));
    return (int16_t)((x < 0 ? (1 << 23) - y + 127 : y - (1 << 23) + 128) >> 8);
}
