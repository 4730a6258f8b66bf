#include "image.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_SIDE = 16384, BMP_HEAD = 54 };

static uint32_t little_endian(const uint8_t* bytes, int count) {
  uint32_t value = 0;
  while (count-- > 0) { value = value << 8 | bytes[count]; }
  return value;
}

static int allocate(image* picture, long width, long height) {
  if (width < 1 || height < 1 || width > MAX_SIDE || height > MAX_SIDE) { return 0; }
  picture->width = (size_t)width;
  picture->height = (size_t)height;
  picture->pixels = malloc(picture->width * picture->height * 3);
  return picture->pixels != NULL;
}

static const char* read_bmp(FILE* stream, image* picture) {
  uint8_t head[BMP_HEAD];
  rewind(stream);
  if (fread(head, 1, sizeof head, stream) != sizeof head) { return "the image is truncated"; }
  const uint32_t bits = little_endian(head + 28, 2);
  if ((bits != 24 && bits != 32) || little_endian(head + 30, 4) != 0) {
    return "the BMP has not 24 or 32 bits a pixel, or is compressed";
  }
  /* Rows from the bottom, unless the height is negative. */
  const long stated = (int32_t)little_endian(head + 22, 4);
  if (!allocate(picture, (int32_t)little_endian(head + 18, 4),
                stated < -MAX_SIDE ? 0 : labs(stated))) {
    return "the image is too large";
  }
  const size_t bytes = bits / 8;
  const size_t padding = (4 - picture->width * bytes % 4) % 4;
  if (fseek(stream, (long)little_endian(head + 10, 4), SEEK_SET) != 0) {
    return "the image is truncated";
  }
  for (size_t i = 0; i < picture->height; ++i) {
    const size_t place = stated > 0 ? picture->height - 1 - i : i;
    uint8_t* row = picture->pixels + place * picture->width * 3;
    for (size_t column = 0; column < picture->width; ++column) {
      uint8_t pixel[4];
      if (fread(pixel, 1, bytes, stream) != bytes) { return "the image is truncated"; }
      for (size_t channel = 0; channel < 3; ++channel) {
        row[3 * column + channel] = pixel[2 - channel];
      }
    }
    fseek(stream, (long)padding, SEEK_CUR);
  }
  return NULL;
}

static const char* read_ppm(FILE* stream, image* picture) {
  int width, height, most;
  rewind(stream);
  if (fscanf(stream, "P6 %d %d %d", &width, &height, &most) != 3 || most != 255) {
    return "the PPM is not binary with 255 levels";
  }
  fgetc(stream);
  if (!allocate(picture, width, height)) { return "the image is too large"; }
  const size_t size = picture->width * picture->height * 3;
  return fread(picture->pixels, 1, size, stream) == size ? NULL : "the image is truncated";
}

const char* image_read(const char* path, image* picture) {
  picture->pixels = NULL;
  FILE* stream = fopen(path, "rb");
  if (stream == NULL) { return "the image cannot be opened"; }
  const int first = fgetc(stream), second = fgetc(stream);
  const char* problem = "the image is neither BMP nor PPM";
  if (first == 'B' && second == 'M') {
    problem = read_bmp(stream, picture);
  } else if (first == 'P' && second == '6') {
    problem = read_ppm(stream, picture);
  }
  fclose(stream);
  if (problem != NULL) { image_free(picture); }
  return problem;
}

void image_free(image* picture) {
  free(picture->pixels);
  picture->pixels = NULL;
}

const uint8_t* image_pixel(const image* picture, size_t row, size_t column) {
  return picture->pixels + (row * picture->width + column) * 3;
}
