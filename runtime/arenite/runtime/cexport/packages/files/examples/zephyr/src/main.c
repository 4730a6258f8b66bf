/* Reads the bytes of the inputs from the console and writes a line for each output. */
#include <zephyr/device.h>
#include <zephyr/drivers/uart.h>
#include <zephyr/kernel.h>

#include "modelname.h"
#include "modelname_serial.h"

static const struct device *const console = DEVICE_DT_GET(DT_CHOSEN(zephyr_console));

static uint8_t receive_byte(void)
{
    unsigned char byte;
    while (uart_poll_in(console, &byte) != 0)
        k_yield();
    return byte;
}

static void send_byte(char byte)
{
    uart_poll_out(console, (unsigned char)byte);
}

int main(void)
{
    modelname_begin();
    for (;;)
        modelname_serve(receive_byte, send_byte);
}
