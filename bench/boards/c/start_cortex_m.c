// Start-up of a Cortex-M: the vectors, and what C expects before main.
#include <stdint.h>

#include "host.h"

extern uint32_t __stack_top[], __data_load[], __data_start[], __data_end[], __bss_start[],
    __bss_end[];

int main(void);

enum { kFault = 90 };

static void fault(void) { host_exit(kFault); }

void reset(void) {
#if defined(__ARM_FP) || defined(__ARM_FEATURE_MVE)
  *(volatile uint32_t*)0xE000ED88 |= 0xFu << 20;  // CPACR: the floating-point unit
  __asm__ volatile("dsb\nisb");
#endif
  const volatile uint32_t* from = __data_load;
  for (volatile uint32_t* to = __data_start; to < __data_end; ++to) *to = *from++;
  for (volatile uint32_t* to = __bss_start; to < __bss_end; ++to) *to = 0;
  host_exit(main());
}

__attribute__((section(".vectors"), used)) static void (*const kVectors[16])(void) = {
    (void (*)(void))__stack_top, reset, fault, fault, fault, fault, fault,
};
