#include "kernel.h"
/* Repeat an element of `size` bytes over `bytes`. */
KERNEL fill(uint8_t *to, const uint8_t *element, int32_t size, int32_t bytes)
{
    for (int32_t i = 0, at = 0; i < bytes; ++i) {
        to[i] = element[at];
        at = at + 1 < size ? at + 1 : 0;
    }
}
