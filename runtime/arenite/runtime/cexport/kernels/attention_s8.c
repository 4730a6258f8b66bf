#include "common.h"
#include "softmax_s8.h"

/* Attention of bytes to `count` keys: scores and weights are rounded to bytes, by factors and
   shifts. Strides in elements; offsets are what stands for zero, negative. `table` is what the
   softmax reads for each score, from -128 on, or NULL. */
typedef struct {
    int32_t rows, heads, group, depth, width, count;
    int32_t key_batch, key_head, key_stride, value_batch, value_head, value_stride;
    int32_t query_offset, key_offset, weight_offset, value_offset;
    int32_t score_factor, score_shift, score_zero, factor, shift, out_zero;
    const int8_t *table;
} attention_layer_s8;

/* The byte of a sum; a factor of floats has no shift. */
static inline int8_t byte_of_sum(int32_t sum, int32_t factor, int32_t shift, int32_t zero)
{
#if HALVES_TO_EVEN
    float scale;
    memcpy(&scale, &factor, sizeof scale);
    (void)shift;
    return (int8_t)clamped(nearest_even((float)sum * scale) + zero, -128, 127);
#else
    return (int8_t)clamped(requantised(sum, factor, shift) + zero, -128, 127);
#endif
}

/* Writes what the softmax reads for each key. */
static void score_s8(const attention_layer_s8 *k, const int8_t *query, const int8_t *key,
                     int8_t *scores)
{
    for (int32_t j = 0; j < k->count; ++j, key += k->key_stride) {
        int32_t sum = 0;
        for (int32_t i = 0; i < k->depth; ++i)
            sum += (query[i] + k->query_offset) * (key[i] + k->key_offset);
        const int8_t score = byte_of_sum(sum, k->score_factor, k->score_shift, k->score_zero);
        scores[j] = k->table != NULL ? k->table[score + 128] : score;
    }
}

/* Writes the values mixed by weights. */
static void mix_s8(const attention_layer_s8 *k, const int8_t *weights, const int8_t *values,
                   int8_t *to)
{
    for (int32_t i = 0; i < k->width; ++i) {
        const int8_t *value = values + i;
        int32_t sum = 0;
        for (int32_t j = 0; j < k->count; ++j, value += k->value_stride)
            sum += (weights[j] + k->weight_offset) * (*value + k->value_offset);
        to[i] = byte_of_sum(sum, k->factor, k->shift, k->out_zero);
    }
}

/* One for each of
   THE_KERNEL        | THE_SOFTMAX        | WRITE_ROW
   attention_s8      | softmax_layer      | softmax_row_s8
   attention_even_s8 | softmax_even_layer | softmax_row_even_s8 */

/* Attention of rows [first, end) of queries, which results may overwrite; `scores` has room for
   those of one query in one head. */
KERNEL THE_KERNEL(const attention_layer_s8 *k, const THE_SOFTMAX *softmax, const uint8_t *keys,
                  const uint8_t *values, int8_t *scores, in_rows in, out_rows out, int32_t first,
                  int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        const int32_t batch = y / k->rows;
        const int8_t *from = (const int8_t *)in_row(in, y);
        int8_t *to = (int8_t *)out_row(out, y);
        for (int32_t head = 0; head < k->heads; ++head) {
            const int32_t shared = head / k->group;
            const int8_t *key = (const int8_t *)keys + batch * k->key_batch + shared * k->key_head;
            const int8_t *value =
                (const int8_t *)values + batch * k->value_batch + shared * k->value_head;
            score_s8(k, from + head * k->depth, key, scores);
            WRITE_ROW(softmax, scores, scores);
            mix_s8(k, scores, value, to + head * k->width);
        }
    }
}
