#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>

#include "plan.h"

static alignas(ARENA_ALIGNMENT) uint8_t arena[ARENA_BYTES];

int main(void) {
  const float* image = (const float*)(arena + OFFSET_DATA_0);
  float* features = (float*)(arena + OFFSET_R0);
  features[0] = image[0]; /* your kernel: reads the image, writes the features */
  printf("%d B, image at %d, features at %d\n", ARENA_BYTES, OFFSET_DATA_0, OFFSET_R0);
  return 0;
}
