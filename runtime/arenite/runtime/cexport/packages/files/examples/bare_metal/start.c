/* Start-up of a Cortex-M: the vectors, and what C expects before main. */
#include <stdint.h>

extern uint32_t stack_top[], data_load[], data_start[], data_end[], bss_start[], bss_end[];

int main(void);
void reset(void);

void reset(void)
{
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
