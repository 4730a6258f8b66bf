/* A sum of 20 fractional bits, halves away from zero. */
static inline int8_t blended_s8(int32_t sum)
{
    return (int8_t)((sum + (sum > 0 ? 1 << 19 : -(1 << 19))) / (1 << 20));
}
