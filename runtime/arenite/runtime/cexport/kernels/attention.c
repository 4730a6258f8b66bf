#include "common.h"

/* Attention of queries in `rows` of each batch to `count` keys. Strides in elements; those of the
   addend are 0 where it is the same for all. `softcap` is 0 where scores have no bound, and
   `window` 0 where a causal query sees all keys up to its own place. */
typedef struct {
    int32_t rows, heads, group, depth, width, count, causal, window;
    int32_t key_batch, key_head, key_stride, value_batch, value_head, value_stride;
    int32_t addend_batch, addend_row, addend_head;
    float scale, softcap;
} attention_layer;

/* Mixes the values of keys [first, end) in `to`, by weights relative to the highest score so far;
   when a higher one comes, what was mixed before is scaled down. */
static void attend_f32(const attention_layer *k, const float *query, const float *keys,
                       const float *values, const float *addend, int32_t first, int32_t end,
                       float *to)
{
    float most = -FLT_MAX, sum = 0.0f;
    for (int32_t i = 0; i < k->width; ++i)
        to[i] = 0.0f;
    for (int32_t j = first; j < end; ++j) {
        const float *key = keys + j * k->key_stride;
        const float *value = values + j * k->value_stride;
        float score = 0.0f;
        for (int32_t i = 0; i < k->depth; ++i)
            score += query[i] * key[i];
        score *= k->scale;
        if (k->softcap != 0.0f)
            score = k->softcap * tanhf(score / k->softcap);
        if (addend != NULL)
            score += addend[j];
        if (score > most) {
            const float factor = expf(most - score);
            most = score;
            sum *= factor;
            for (int32_t i = 0; i < k->width; ++i)
                to[i] *= factor;
        }
        const float weight = expf(score - most);
        sum += weight;
        for (int32_t i = 0; i < k->width; ++i)
            to[i] += weight * value[i];
    }
    for (int32_t i = 0; i < k->width && sum != 0.0f; ++i)
        to[i] /= sum;
}

/* Attention of rows [first, end) of queries. `addends` and `lengths`, the keys of each batch that
   count, may be NULL. */
KERNEL attention_f32(const attention_layer *k, const uint8_t *keys, const uint8_t *values,
                     const uint8_t *addends, const uint8_t *lengths, in_rows in, out_rows out,
                     int32_t first, int32_t end)
{
    for (int32_t y = first; y < end; ++y) {
        const int32_t batch = y / k->rows, row = y % k->rows;
        const float *from = (const float *)(const void *)in_row(in, y);
        float *to = (float *)(void *)out_row(out, y);
        int32_t count = k->count;
        if (lengths != NULL) {
            const int32_t stated = ((const int32_t *)(const void *)lengths)[batch];
            count = stated < 0 ? 0 : stated < count ? stated : count;
        }
        int32_t seen = k->causal ? count - (k->rows - 1 - row) : count;
        seen = seen < 0 ? 0 : seen;
        const int32_t begin = k->window > 0 && seen > k->window ? seen - k->window : 0;
        for (int32_t head = 0; head < k->heads; ++head) {
            const int32_t shared = head / k->group;
            const float *addend = (const float *)(const void *)addends;
            if (addend != NULL)
                addend += batch * k->addend_batch + row * k->addend_row + head * k->addend_head;
            attend_f32(
                k, from + head * k->depth,
                (const float *)(const void *)keys + batch * k->key_batch + shared * k->key_head,
                (const float *)(const void *)values + batch * k->value_batch +
                    shared * k->value_head,
                addend, begin, seen, to + head * k->width);
        }
    }
}

/* Rotates the first `pairs` pairs of each head of `size` elements, in rows [first, end), by the
   angles of their place, which come again after `places`. */
KERNEL rotary_f32(int32_t heads, int32_t size, int32_t pairs, int32_t interleaved, int32_t places,
                  const uint8_t *cosines, const uint8_t *sines, in_rows in, out_rows out,
                  int32_t first, int32_t end)
{
    const int32_t step = interleaved ? 2 : 1, other = interleaved ? 1 : pairs;
    for (int32_t y = first; y < end; ++y) {
        const float *from = (const float *)(const void *)in_row(in, y);
        float *to = (float *)(void *)out_row(out, y);
        const float *c = (const float *)(const void *)cosines + y % places * pairs;
        const float *s = (const float *)(const void *)sines + y % places * pairs;
        for (int32_t head = 0; head < heads; ++head, from += size, to += size) {
            for (int32_t i = 0; i < pairs; ++i) {
                const float one = from[i * step], two = from[i * step + other];
                to[i * step] = c[i] * one - s[i] * two;
                to[i * step + other] = s[i] * one + c[i] * two;
            }
            for (int32_t i = 2 * pairs; i < size; ++i)
                to[i] = from[i];
        }
    }
}
