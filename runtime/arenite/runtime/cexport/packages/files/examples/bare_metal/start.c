/* Start-up of a Cortex-M: the vectors, and what C expects before main. */
#include <stdint.h>

extern uint32_t stack_top[], data_load[], data_start[], data_end[], bss_start[], bss_end[];

int main(void);
void reset(void);

void reset(void)
{
#if defined(__ARM_FP) || defined(__ARM_FEATURE_MVE)
    *(volatile uint32_t *)0xE000ED88 |= 0xFu << 20; /* Floats and vectors. */
    __asm__ volatile("dsb\n\tisb");
#endif
    const uint32_t *from = data_load;
    for (volatile uint32_t *to = data_start; to < data_end; ++to)
        *to = *from++;
    for (volatile uint32_t *to = bss_start; to < bss_end; ++to)
        *to = 0;
    main();
    for (;;) {
    }
}

static void fault(void)
{
    for (;;) {
    }
}

__attribute__((section(".vectors"), used)) static void (*const vectors[16])(void) = {
    (void (*)(void))(uintptr_t)stack_top, reset, fault, fault, fault, fault, fault,
};
