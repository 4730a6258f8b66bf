/* Add the products of `count` inputs with the weights of four outputs to their sums. */
static inline void dot4_f32(float *sums, const float *input, const float *filter, int32_t count)
{
    float a = sums[0], b = sums[1], c = sums[2], d = sums[3];
    for (const float *end = input + count; input < end; ++input, filter += 4) {
        a += *input * filter[0];
        b += *input * filter[1];
        c += *input * filter[2];
        d += *input * filter[3];
    }
    sums[0] = a;
    sums[1] = b;
    sums[2] = c;
    sums[3] = d;
}
