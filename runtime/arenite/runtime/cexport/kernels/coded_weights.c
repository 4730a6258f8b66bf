#include "common.h"

/* A prefix code of bytes. Codes of a length follow one another, and those of the next length follow
   them; the shortest have `shortest` bits, the longest 15. */
typedef struct {
    const uint16_t *lasts;  /* For each length the last code, its first bit the highest of 16. */
    const int16_t *bases;   /* What a code of that length, as a number, adds to: a place. */
    const uint8_t *symbols; /* The byte at each place. */
    int32_t shortest;
} byte_code;

/* Decode `count` bytes; up to 3 behind the codes are read too. */
KERNEL decoded_weights(const byte_code *k, const uint8_t *from, uint8_t *to, int32_t count)
{
    const int32_t shortest = k->shortest;
    uint32_t bits = 0;
    int32_t filled = 0;
    for (uint8_t *const end = to + count; to < end; ++to) {
        int32_t longer = 0;
        uint32_t top;
        for (; filled <= 24; filled += 8)
            bits |= (uint32_t)*from++ << (24 - filled);
        top = bits >> 16;
        while (top > k->lasts[longer])
            ++longer;
        *to = k->symbols[(int32_t)(top >> (16 - shortest - longer)) + k->bases[longer]];
        bits <<= shortest + longer;
        filled -= shortest + longer;
    }
}
