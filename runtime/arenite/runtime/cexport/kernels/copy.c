#include "kernel.h"
#include "rows.h"

/* Runs of bytes in up to four dimensions; steps in bytes. */
typedef struct {
    int32_t run, n0, n1, n2, n3;
    int32_t from0, from1, from2, from3;
    int32_t to0, to1, to2, to3;
} copy_layer;

KERNEL copy(const copy_layer *k, const uint8_t *from, uint8_t *to)
{
    for (int32_t a = 0; a < k->n0; ++a)
        for (int32_t b = 0; b < k->n1; ++b)
            for (int32_t c = 0; c < k->n2; ++c) {
                const uint8_t *source = from + a * k->from0 + b * k->from1 + c * k->from2;
                uint8_t *result = to + a * k->to0 + b * k->to1 + c * k->to2;
                for (int32_t d = 0; d < k->n3; ++d, source += k->from3, result += k->to3)
                    for (int32_t i = 0; i < k->run; ++i)
                        result[i] = source[i];
            }
}
