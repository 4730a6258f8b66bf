// What an application uses of FreeRTOS.
#pragma once
#include <stdlib.h>

static inline void vTaskDelay(int ticks) { exit(ticks - 1); }  // it waits where its input ends
