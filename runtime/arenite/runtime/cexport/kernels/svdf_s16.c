#include "kernel.h"
#include "requantise.h"
#define SVDF_LEAST -32768
typedef int16_t svdf_element;
#include "svdf_layer.h"
