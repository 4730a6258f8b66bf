#include "freertos/FreeRTOS.h"
