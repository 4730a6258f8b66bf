// Semihosting: an instruction that the emulator takes for a call, with an operation and its
// operands.
#include "host.h"

#if defined(__XTENSA__)
// A call of Xtensa's simulator, which QEMU answers as Linux on the machine that emulates would.
enum { kExit = 1, kRead = 3, kWrite = 4, kOpen = 5, kClose = 6 };
enum { kReadOnly = 0, kWriteOnly = 01, kCreate = 0100, kTruncate = 01000, kMode = 0644 };

static int call(int operation, uint32_t first, uint32_t second, uint32_t third) {
  register int a2 __asm__("a2") = operation;
  register uint32_t a3 __asm__("a3") = first;
  register uint32_t a4 __asm__("a4") = second;
  register uint32_t a5 __asm__("a5") = third;
  __asm__ volatile("simcall" : "+r"(a2), "+r"(a3) : "r"(a4), "r"(a5) : "memory");
  return a2;
}

int host_open(const char* name, uint32_t length, int mode) {
  (void)length;  // the name ends with a zero
  const int flags = mode == kHostRead ? kReadOnly : kWriteOnly | kCreate | kTruncate;
  return call(kOpen, (uint32_t)name, (uint32_t)flags, kMode);
}

static uint32_t left(uint32_t count, int done) { return done < 0 ? count : count - (uint32_t)done; }

uint32_t host_read(int handle, void* bytes, uint32_t count) {
  return left(count, call(kRead, (uint32_t)handle, (uint32_t)bytes, count));
}

uint32_t host_write(int handle, const void* bytes, uint32_t count) {
  return left(count, call(kWrite, (uint32_t)handle, (uint32_t)bytes, count));
}

void host_close(int handle) { call(kClose, (uint32_t)handle, 0, 0); }

_Noreturn void host_exit(int code) {
  call(kExit, (uint32_t)code, 0, 0);
  for (;;) {}
}
#else
enum { kOpen = 0x01, kClose = 0x02, kWrite = 0x05, kRead = 0x06, kExit = 0x20 };
enum { kApplicationExit = 0x20026 };

static uint32_t call(uint32_t operation, const uint32_t* operands) {
#if defined(__riscv)
  register uint32_t a0 __asm__("a0") = operation;
  register const uint32_t* a1 __asm__("a1") = operands;
  // The three instructions are the mark of a call; they must lie in one page, uncompressed.
  __asm__ volatile(
      ".balign 16\n.option push\n.option norvc\n"
      "slli x0, x0, 0x1f\nebreak\nsrai x0, x0, 7\n.option pop"
      : "+r"(a0)
      : "r"(a1)
      : "memory");
  return a0;
#else
  register uint32_t r0 __asm__("r0") = operation;
  register const uint32_t* r1 __asm__("r1") = operands;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
#endif
}

int host_open(const char* name, uint32_t length, int mode) {
  const uint32_t operands[] = {(uint32_t)name, (uint32_t)mode, length};
  return (int)call(kOpen, operands);
}

uint32_t host_read(int handle, void* bytes, uint32_t count) {
  const uint32_t operands[] = {(uint32_t)handle, (uint32_t)bytes, count};
  return call(kRead, operands);
}

uint32_t host_write(int handle, const void* bytes, uint32_t count) {
  const uint32_t operands[] = {(uint32_t)handle, (uint32_t)bytes, count};
  return call(kWrite, operands);
}

void host_close(int handle) {
  const uint32_t operands[] = {(uint32_t)handle};
  call(kClose, operands);
}

_Noreturn void host_exit(int code) {
  const uint32_t operands[] = {kApplicationExit, (uint32_t)code};
  call(kExit, operands);
  for (;;) {}
}
#endif
