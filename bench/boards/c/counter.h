// Counts instructions: the emulator lets one pass in each nanosecond of the board's time.
#ifndef BOARDS_COUNTER_H
#define BOARDS_COUNTER_H

#include <stdint.h>

extern uint64_t counted_ticks;

void counter_start(void);

// Adds what passed since the last call. SysTick has 24 bits, so the model's step hook calls this
// before it can wrap.
void counter_poll(void);

#endif
