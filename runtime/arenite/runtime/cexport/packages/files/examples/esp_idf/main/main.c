/* Reads the bytes of the inputs from the console and writes a line for each output. */
#include <stdio.h>

#include "freertos/FreeRTOS.h"
#include "freertos/task.h"
#include "modelname.h"
#include "modelname_serial.h"

static uint8_t receive_byte(void)
{
    int byte = getchar();
    while (byte == EOF) { /* nothing has arrived yet */
        clearerr(stdin);
        vTaskDelay(1);
        byte = getchar();
    }
    return (uint8_t)byte;
}

static void send_byte(char byte)
{
    putchar(byte);
    if (byte == '\n')
        fflush(stdout);
}

void app_main(void)
{
    modelname_begin();
    for (;;)
        modelname_serve(receive_byte, send_byte);
}
