// Start-up of an Xtensa core: the stack, where exceptions go, and what C expects before main.
#include <stdint.h>

#include "host.h"

extern uint8_t __data_load[], __data_start[], __data_end[];
extern uint32_t __bss_start[], __bss_end[];

int main(void);

enum { kFault = 90 };

__attribute__((used)) static void fault(void) { host_exit(kFault); }

__attribute__((used)) static void begin(void) {
  // Bytes: words have to be aligned here, and in flash these may lie anywhere.
  const volatile uint8_t* from = __data_load;
  for (volatile uint8_t* to = __data_start; to < __data_end; ++to) *to = *from++;
  for (volatile uint32_t* to = __bss_start; to < __bss_end; ++to) *to = 0;
  host_exit(main());
}

// The core begins at the first byte. Its vectors lie 16 bytes apart; the stack of a program that
// took a fault is not trusted.
__asm__(
    ".section .vectors, \"ax\"\n"
    ".global reset\n"
    "reset: j 1f\n"
    ".balign 4\n"
    ".Lvectors: .word vectors\n"
    ".Lstack: .word __stack_top\n"
    ".Lbegin: .word begin\n"
    ".Lfault: .word fault\n"
    "1: l32r a1, .Lvectors\n"
    "wsr.vecbase a1\n"
    "movi a1, 0x20\n"  // in user mode, and no longer within an exception
    "wsr.ps a1\n"
    "rsync\n"
    "l32r a1, .Lstack\n"
    "l32r a2, .Lbegin\n"
    "jx a2\n"
    "2: l32r a1, .Lstack\n"
    "l32r a2, .Lfault\n"
    "jx a2\n"
    ".balign 4096\n"
    "vectors:\n"
    ".rept 16\n"
    ".balign 16\n"
    "j 2b\n"
    ".endr\n"
    ".text\n");
