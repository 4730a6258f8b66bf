#include "zephyr/standin.h"
