/* Reads images without any library: BMP of 24 or 32 bits, not compressed, and binary PPM. */
#ifndef IMAGE_H
#define IMAGE_H

#include <stddef.h>
#include <stdint.h>

typedef struct image {
  size_t width;
  size_t height;
  uint8_t* pixels; /* red, green, blue; rows from the top */
} image;

/* Null, or what is wrong with the file. */
const char* image_read(const char* path, image* picture);
void image_free(image* picture);
const uint8_t* image_pixel(const image* picture, size_t row, size_t column);

#endif
