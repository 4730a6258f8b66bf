#include "common.h"

/* Where updates of `length` elements go: each has `axes` indices, of axes whose lengths and
   strides stand here. Those of elements also lie where their index stands: at the axes of
   `index_shape`, `strides_beside` elements apart. Indices below 0 count from the end if
   `is_wrapped`. */
typedef struct {
    int32_t updates, length, axes, index_axes, is_wrapped;
    const int32_t *lengths, *strides, *index_shape, *strides_beside;
} scatter_layer;

/* One for each of
   THE_KERNEL          | ELEMENT  | AN_INDEX | BECOMES
   replace_8_32        | uint8_t  | int32_t  | = z
   replace_8_64        | uint8_t  | int64_t  | = z
   replace_16_32       | uint16_t | int32_t  | = z
   replace_16_64       | uint16_t | int64_t  | = z
   replace_32_32       | uint32_t | int32_t  | = z
   replace_32_64       | uint32_t | int64_t  | = z
   replace_64_32       | uint64_t | int32_t  | = z
   replace_64_64       | uint64_t | int64_t  | = z
   add_at_f32_32       | float    | int32_t  | += z
   add_at_f32_64       | float    | int64_t  | += z
   add_at_s32_32       | uint32_t | int32_t  | += z
   add_at_s32_64       | uint32_t | int64_t  | += z
   add_at_s64_32       | uint64_t | int32_t  | += z
   add_at_s64_64       | uint64_t | int64_t  | += z
   multiply_at_f32_32  | float    | int32_t  | *= z
   multiply_at_f32_64  | float    | int64_t  | *= z
   minimum_at_f32_32   | float    | int32_t  | = z < to[j] ? z : to[j]
   minimum_at_f32_64   | float    | int64_t  | = z < to[j] ? z : to[j]
   maximum_at_f32_32   | float    | int32_t  | = z > to[j] ? z : to[j]
   maximum_at_f32_64   | float    | int64_t  | = z > to[j] ? z : to[j] */

/* Updates, one after another; those with an index out of range are dropped. */
KERNEL THE_KERNEL(const scatter_layer *k, const uint8_t *indices, const uint8_t *updates,
                  uint8_t *out)
{
    const AN_INDEX *index = (const AN_INDEX *)(const void *)indices;
    const ELEMENT *from = (const ELEMENT *)(const void *)updates;
    int32_t at[6] = {0, 0, 0, 0, 0, 0}, beside = 0;
    for (int32_t i = 0; i < k->updates; ++i, index += k->axes, from += k->length) {
        int32_t place = beside, count = k->length;
        for (int32_t axis = 0; axis < k->axes; ++axis) {
            const int32_t length = k->lengths[axis];
            const AN_INDEX wanted =
                k->is_wrapped && index[axis] < 0 ? index[axis] + length : index[axis];
            if (wanted >= 0 && wanted < length)
                place += (int32_t)wanted * k->strides[axis];
            else
                count = 0;
        }
        ELEMENT *to = (ELEMENT *)(void *)out + place;
        for (int32_t j = 0; j < count; ++j) {
            const ELEMENT z = from[j];
            to[j] BECOMES;
        }
        for (int32_t axis = k->index_axes; axis-- > 0;) {
            beside += k->strides_beside[axis];
            if (++at[axis] < k->index_shape[axis])
                break;
            beside -= k->strides_beside[axis] * k->index_shape[axis];
            at[axis] = 0;
        }
    }
}
