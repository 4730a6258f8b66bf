/* Reads the bytes of the inputs from the serial line and writes a line for each output. */
#include "modelname.h"
#include "modelname_serial.h"

/* The serial line of Arm's MPS2 boards; write that of your chip. */
#define UART ((volatile uint32_t *)0x40004000)
enum { DATA, STATE, CONTROL, DIVIDER = 4 };
enum { SEND_FULL = 1, RECEIVE_FULL = 2, BOTH_ENABLED = 3 };

static uint8_t receive_byte(void)
{
    while ((UART[STATE] & RECEIVE_FULL) == 0) {
    }
    return (uint8_t)UART[DATA];
}

static void send_byte(char byte)
{
    while ((UART[STATE] & SEND_FULL) != 0) {
    }
    UART[DATA] = (uint8_t)byte;
}

int main(void)
{
    UART[DIVIDER] = 25000000 / 115200;
    UART[CONTROL] = BOTH_ENABLED;
    modelname_begin();
    for (;;)
        modelname_serve(receive_byte, send_byte);
}
