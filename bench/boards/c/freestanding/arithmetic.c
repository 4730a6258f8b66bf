// What the compiler's own library for the LX106 leaves out because the ROM of an ESP8266 has it:
// products of 64 bits and quotients of 32. Arithmetic of floats is missing there too, and here.
#include <stdint.h>

typedef union {
  int64_t whole;
  struct {
    uint32_t low, high;
  } half;
} wide;

int64_t __muldi3(int64_t one, int64_t other);
uint32_t __udivsi3(uint32_t number, uint32_t divisor);
uint32_t __umodsi3(uint32_t number, uint32_t divisor);
int32_t __divsi3(int32_t number, int32_t divisor);

// The processor multiplies to 32 bits, so halves of 16 are multiplied.
int64_t __muldi3(int64_t one, int64_t other) {
  const wide a = {one}, b = {other};
  const uint32_t a0 = a.half.low & 0xFFFF, a1 = a.half.low >> 16;
  const uint32_t b0 = b.half.low & 0xFFFF, b1 = b.half.low >> 16;
  const uint32_t low = a0 * b0, middle = a1 * b0 + (low >> 16);
  const uint32_t carried = a0 * b1 + (middle & 0xFFFF);
  wide product;
  product.half.low = carried << 16 | (low & 0xFFFF);
  product.half.high = a1 * b1 + (middle >> 16) + (carried >> 16);
  product.half.high += a.half.low * b.half.high + a.half.high * b.half.low;
  return product.whole;
}

uint32_t __udivsi3(uint32_t number, uint32_t divisor) {
  if (divisor == 0 || number < divisor) return 0;
  uint32_t quotient = 0;
  for (int shift = __builtin_clz(divisor) - __builtin_clz(number); shift >= 0; --shift) {
    quotient <<= 1;
    if (number >= divisor << shift) {
      number -= divisor << shift;
      quotient |= 1;
    }
  }
  return quotient;
}

uint32_t __umodsi3(uint32_t number, uint32_t divisor) {
  return number - __udivsi3(number, divisor) * divisor;
}

int32_t __divsi3(int32_t number, int32_t divisor) {
  const uint32_t n = number < 0 ? -(uint32_t)number : (uint32_t)number;
  const uint32_t d = divisor < 0 ? -(uint32_t)divisor : (uint32_t)divisor;
  const uint32_t quotient = __udivsi3(n, d);
  return (int32_t)((number < 0) != (divisor < 0) ? -quotient : quotient);
}
