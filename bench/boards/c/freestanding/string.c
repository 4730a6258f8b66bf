// Words at a time where both addresses allow it.
#include <stdint.h>
#include <string.h>

typedef uint32_t __attribute__((may_alias)) word;

static int in_words(const void* one, const void* other) {
  return (((uintptr_t)one | (uintptr_t)other) & 3) == 0;
}

void* memcpy(void* to, const void* from, size_t count) {
  uint8_t* out = to;
  const uint8_t* in = from;
  if (in_words(to, from))
    for (; count >= 4; count -= 4, out += 4, in += 4)
      *(word*)(void*)out = *(const word*)(const void*)in;
  for (; count > 0; --count) *out++ = *in++;
  return to;
}

void* memmove(void* to, const void* from, size_t count) {
  const uint8_t* in = from;
  if ((uintptr_t)to <= (uintptr_t)from) return memcpy(to, from, count);
  for (uint8_t* out = to; count > 0; --count) out[count - 1] = in[count - 1];
  return to;
}

void* memset(void* to, int value, size_t count) {
  uint8_t* out = to;
  const word four = (uint8_t)value * 0x01010101u;
  if (in_words(to, to))
    for (; count >= 4; count -= 4, out += 4) *(word*)(void*)out = four;
  for (; count > 0; --count) *out++ = (uint8_t)value;
  return to;
}

int memcmp(const void* one, const void* other, size_t count) {
  const uint8_t *a = one, *b = other;
  for (; count > 0; --count, ++a, ++b)
    if (*a != *b) return *a < *b ? -1 : 1;
  return 0;
}
