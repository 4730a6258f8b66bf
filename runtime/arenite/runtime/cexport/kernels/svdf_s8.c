#include "kernel.h"
#include "requantise.h"
#define SVDF_LEAST -128
typedef int8_t svdf_element;
#include "svdf_layer.h"
