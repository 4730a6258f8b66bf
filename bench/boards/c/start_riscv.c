// Start-up of a RISC-V machine: the stack, where traps go, and what C expects before main.
#include <stdint.h>

#include "host.h"

extern uint32_t __data_load[], __data_start[], __data_end[], __bss_start[], __bss_end[];

int main(void);

enum { kFault = 90 };

__attribute__((aligned(4), used)) static void fault(void) { host_exit(kFault); }

enum { kFloats = 0x2000, kVectors = 0x200 };

__attribute__((used)) static void begin(void) {
  // A processor without these ignores it.
  __asm__ volatile("csrs mstatus, %0" : : "r"(kFloats | kVectors));
  __asm__ volatile("csrw mtvec, %0" : : "r"(fault));
  const volatile uint32_t* from = __data_load;
  for (volatile uint32_t* to = __data_start; to < __data_end; ++to) *to = *from++;
  for (volatile uint32_t* to = __bss_start; to < __bss_end; ++to) *to = 0;
  host_exit(main());
}

__attribute__((naked, section(".vectors"), used)) void reset(void) {
  __asm__ volatile("la sp, __stack_top\nj begin");
}
