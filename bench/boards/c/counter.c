// SysTick on Cortex-M, in ticks of the processor's clock; mcycle on RISC-V, in instructions; CCOUNT
// on Xtensa, in ticks.
#include "counter.h"

uint64_t counted_ticks;

#if defined(__riscv) || defined(__XTENSA__)
static uint32_t last;

static uint32_t now(void) {
  uint32_t cycles;
#if defined(__riscv)
  __asm__ volatile("csrr %0, mcycle" : "=r"(cycles));
#else
  __asm__ volatile("rsr.ccount %0" : "=r"(cycles));
#endif
  return cycles;
}

void counter_start(void) {
  counted_ticks = 0;
  last = now();
}

void counter_poll(void) {
  const uint32_t at = now();
  counted_ticks += at - last;
  last = at;
}
#else
static volatile uint32_t* const kSysTick = (volatile uint32_t*)0xE000E010;
enum { kControl, kReload, kValue };
enum { kWrap = 0xFFFFFF };
static uint32_t last;

void counter_start(void) {
  counted_ticks = 0;
  kSysTick[kReload] = kWrap;
  kSysTick[kValue] = 0;
  kSysTick[kControl] = 5;  // enabled, without interrupt, on the processor's clock
  last = kSysTick[kValue];
}

void counter_poll(void) {
  const uint32_t at = kSysTick[kValue];  // counts down
  counted_ticks += (last - at) & kWrap;
  last = at;
}
#endif
