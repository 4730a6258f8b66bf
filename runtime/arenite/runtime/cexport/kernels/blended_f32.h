/* A sum as it is. */
static inline float blended_f32(float sum)
{
    return sum;
}
