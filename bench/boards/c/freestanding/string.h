// What C source of a model uses of a library, for a compiler that comes without one.
#ifndef BOARDS_FREESTANDING_STRING_H
#define BOARDS_FREESTANDING_STRING_H

#include <stddef.h>

void* memcpy(void* to, const void* from, size_t count);
void* memmove(void* to, const void* from, size_t count);
void* memset(void* to, int value, size_t count);
int memcmp(const void* one, const void* other, size_t count);

#endif
