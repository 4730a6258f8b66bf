/* A number within bounds; NaN stays. */
static inline float clamped_f32(float value, float low, float high)
{
    return value < low ? low : value > high ? high : value;
}
