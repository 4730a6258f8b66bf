#include "common.h"

/* Boxes of a detector: at most `most` of each class of each image. */
typedef struct {
    int32_t images, classes, boxes, most, by_centre;
    float overlap, score;
} suppression_layer;

/* Where a box begins and ends on one of its two axes. */
typedef struct {
    float low, high;
} box_side;

static box_side side_of(const suppression_layer *k, const float *box, int32_t axis)
{
    box_side side;
    const float a = box[axis], b = box[axis + 2];
    side.low = k->by_centre ? a - b / 2 : b < a ? b : a;
    side.high = k->by_centre ? a + b / 2 : a < b ? b : a;
    return side;
}

static float shared_side(box_side a, box_side b)
{
    const float high = b.high < a.high ? b.high : a.high, low = a.low < b.low ? b.low : a.low;
    return high - low < 0.0f ? 0.0f : high - low;
}

/* Intersection over union; 0 if either has no area. */
static float box_overlap(const suppression_layer *k, const float *one, const float *other)
{
    const box_side a = side_of(k, one, 0), b = side_of(k, one, 1);
    const box_side c = side_of(k, other, 0), d = side_of(k, other, 1);
    const float area = (a.high - a.low) * (b.high - b.low);
    const float beside = (c.high - c.low) * (d.high - d.low);
    const float both = shared_side(a, c) * shared_side(b, d);
    return area > 0 && beside > 0 ? both / (area + beside - both) : 0.0f;
}

static inline int is_better(const float *scores, int32_t one, int32_t other)
{
    return scores[one] > scores[other] || (scores[one] == scores[other] && one < other);
}

/* Let the box at a place of a heap sink below all better ones. */
static void sink(const float *scores, int32_t *heap, int32_t count, int32_t place)
{
    const int32_t box = heap[place];
    for (int32_t next = 2 * place + 1; next < count; next = 2 * place + 1) {
        if (next + 1 < count && is_better(scores, heap[next + 1], heap[next]))
            ++next;
        if (!is_better(scores, heap[next], box))
            break;
        heap[place] = heap[next];
        place = next;
    }
    heap[place] = box;
}

/* Rows of image, class and box: the best boxes that overlap no better one of their class. */
KERNEL suppress_f32(const suppression_layer *k, const uint8_t *all_boxes, const uint8_t *all_scores,
                    uint8_t *working, uint8_t *rows, int32_t *count)
{
    int32_t *const heap = (int32_t *)(void *)working;
    int64_t *row = (int64_t *)(void *)rows;
    int32_t found = 0;
    for (int32_t each = 0; each < k->images * k->classes; ++each) {
        const int32_t image = each / k->classes;
        const float *boxes = (const float *)(const void *)all_boxes + image * k->boxes * 4;
        const float *scores = (const float *)(const void *)all_scores + each * k->boxes;
        const int64_t *const first = row;
        int32_t waiting = 0;
        for (int32_t i = 0; i < k->boxes; ++i)
            if (scores[i] > k->score || (k->score == -INFINITY && scores[i] == k->score))
                heap[waiting++] = i;
        for (int32_t i = waiting / 2 - 1; i >= 0; --i)
            sink(scores, heap, waiting, i);
        while (waiting > 0 && row - first < 3 * k->most) {
            const int32_t box = heap[0];
            int32_t is_free = 1;
            heap[0] = heap[--waiting];
            sink(scores, heap, waiting, 0);
            for (const int64_t *other = first; other < row && is_free; other += 3)
                is_free = !(box_overlap(k, boxes + 4 * box, boxes + 4 * other[2]) > k->overlap);
            if (!is_free)
                continue;
            *row++ = image;
            *row++ = each % k->classes;
            *row++ = box;
            ++found;
        }
    }
    *count = found;
}

/* The elements of a tensor of up to six axes. */
typedef struct {
    int32_t elements, rank, n0, n1, n2, n3, n4, n5;
} places_layer;

/* One for each of
   THE_KERNEL   | AN_ELEMENT
   non_zero_8   | uint8_t
   non_zero_s32 | int32_t
   non_zero_s64 | int64_t
   non_zero_f32 | float */

/* The places of the elements that are not 0: rows of an index for each axis. */
KERNEL THE_KERNEL(const places_layer *k, const uint8_t *in, uint8_t *rows, int32_t *count)
{
    const int32_t lengths[] = {k->n0, k->n1, k->n2, k->n3, k->n4, k->n5};
    const AN_ELEMENT *from = (const AN_ELEMENT *)(const void *)in;
    int64_t *row = (int64_t *)(void *)rows;
    int32_t found = 0;
    for (int32_t i = 0; i < k->elements; ++i) {
        if (from[i] == 0)
            continue;
        int32_t place = i;
        for (int32_t axis = k->rank - 1; axis >= 0; place /= lengths[axis--])
            row[axis] = place % lengths[axis];
        row += k->rank;
        ++found;
    }
    *count = found;
}

/* One for each of
   THE_KERNEL   | AN_ELEMENT | AN_INDEX
   top_k_f32_32 | float      | int32_t
   top_k_f32_64 | float      | int64_t
   top_k_s32_32 | int32_t    | int32_t
   top_k_s32_64 | int32_t    | int64_t
   top_k_s64_64 | int64_t    | int64_t */

/* The largest elements of each row and their places, sorted; of equal ones the first. */
KERNEL THE_KERNEL(int32_t rows, int32_t length, int32_t most, const uint8_t *in, uint8_t *out,
                  uint8_t *places)
{
    const AN_ELEMENT *from = (const AN_ELEMENT *)(const void *)in;
    AN_ELEMENT *values = (AN_ELEMENT *)(void *)out;
    AN_INDEX *indices = (AN_INDEX *)(void *)places;
    for (int32_t row = 0; row < rows; ++row, from += length, values += most, indices += most)
        for (int32_t i = 0, kept = 0; i < length && most > 0; ++i) {
            if (kept == most && !(from[i] > values[kept - 1]))
                continue;
            if (kept < most)
                ++kept;
            int32_t place = kept - 1;
            for (; place > 0 && from[i] > values[place - 1]; --place) {
                values[place] = values[place - 1];
                indices[place] = indices[place - 1];
            }
            values[place] = from[i];
            indices[place] = i;
        }
}
