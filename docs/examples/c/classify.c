/* Classifies an image: classify MODEL.arena IMAGE.bmp|IMAGE.ppm [LABELS.txt [MEAN SCALE]]
 *
 * For models with one input of N, H, W, C or N, C, H, W with three channels, and scores as the
 * first output. The model sees (byte - MEAN) * SCALE, 127.5 and 1/127.5 if they are left out: what
 * it was trained on is for you to know. A quantised input is fed the integers that stand for
 * these numbers. */
#include <arenite.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image.h"

enum { NUM_TOP = 5 };

static void require(int holds, const char* reason) {
  if (!holds) {
    fprintf(stderr, "error: %s\n", reason);
    exit(1);
  }
}

static void check(arenite_status status) { require(status == ARENITE_OK, arenite_last_error()); }

/* Writes one colour of one pixel as the element type of the input has it. */
static void put(const arenite_tensor* input, char* place, float value) {
  if (input->type == ARENITE_FLOAT32) {
    memcpy(place, &value, sizeof value);
    return;
  }
  const float scale = input->scale > 0 ? input->scale : 1;
  const float low = input->type == ARENITE_INT8 ? -128 : 0;
  const float quantum = roundf(value / scale) + (float)input->zero_point;
  const float clamped = fminf(fmaxf(quantum, low), low + 255);
  *place = (char)(int)clamped;
}

/* Scales the image to the input, nearest pixel, and writes it where it lies in the arena. The
 * strides say where an element is, whatever the order of the axes. */
static void feed(const arenite_tensor* input, const image* picture, float mean, float scale) {
  require(input->rank == 4, "the model's input is no image");
  const size_t channel_axis = input->shape[3] == 3 ? 3 : 1;
  const size_t row_axis = channel_axis == 3 ? 1 : 2;
  require(input->shape[channel_axis] == 3 && input->shape[0] == 1,
          "the model's input is not one image of three colours");
  require(
      input->type == ARENITE_FLOAT32 || input->type == ARENITE_INT8 || input->type == ARENITE_UINT8,
      "the model's input is neither bytes nor float32");
  const size_t height = input->shape[row_axis], width = input->shape[row_axis + 1];
  for (size_t row = 0; row < height; ++row) {
    for (size_t column = 0; column < width; ++column) {
      const uint8_t* pixel =
          image_pixel(picture, row * picture->height / height, column * picture->width / width);
      for (size_t channel = 0; channel < 3; ++channel) {
        char* place = (char*)input->data + (ptrdiff_t)row * input->strides[row_axis] +
                      (ptrdiff_t)column * input->strides[row_axis + 1] +
                      (ptrdiff_t)channel * input->strides[channel_axis];
        put(input, place, ((float)pixel[channel] - mean) * scale);
      }
    }
  }
}

static float score(const arenite_tensor* output, const void* data, size_t index) {
  switch (output->type) {
    case ARENITE_FLOAT32: return ((const float*)data)[index];
    case ARENITE_INT8:
      return (float)(((const int8_t*)data)[index] - output->zero_point) * output->scale;
    default: return (float)(((const uint8_t*)data)[index] - output->zero_point) * output->scale;
  }
}

/* Prints line `index` of the file, without its end. */
static void print_label(FILE* labels, size_t index) {
  char line[256];
  rewind(labels);
  for (size_t i = 0; i <= index; ++i) {
    if (fgets(line, sizeof line, labels) == NULL) { return; }
  }
  line[strcspn(line, "\r\n")] = '\0';
  printf("  %s", line);
}

static void print_top(const arenite_tensor* output, const void* data, size_t count, FILE* labels) {
  size_t top[NUM_TOP];
  for (size_t place = 0; place < NUM_TOP && place < count; ++place) {
    size_t best = count;
    for (size_t i = 0; i < count; ++i) {
      int is_taken = 0;
      for (size_t j = 0; j < place; ++j) { is_taken = is_taken || top[j] == i; }
      if (!is_taken && (best == count || score(output, data, i) > score(output, data, best))) {
        best = i;
      }
    }
    top[place] = best;
    printf("%6zu  %.4f", best, (double)score(output, data, best));
    if (labels != NULL) { print_label(labels, best); }
    printf("\n");
  }
}

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4 && argc != 6) {
    fprintf(stderr, "usage: classify MODEL.arena IMAGE.bmp|IMAGE.ppm [LABELS.txt [MEAN SCALE]]\n");
    return 2;
  }
  arenite_model* model;
  arenite_session* session;
  check(arenite_model_open(argv[1], &model));
  check(arenite_session_create(model, NULL, &session));

  image picture;
  const char* problem = image_read(argv[2], &picture);
  require(problem == NULL, problem);
  FILE* labels = argc > 3 ? fopen(argv[3], "r") : NULL;
  require(argc <= 3 || labels != NULL, "the labels cannot be opened");

  const arenite_tensor* input = arenite_session_input(session, 0);
  const arenite_tensor* output = arenite_session_output(session, 0);
  require(input != NULL && output != NULL, "the model has no input, or no output");
  require(output->type == ARENITE_FLOAT32 || output->type == ARENITE_INT8 ||
              output->type == ARENITE_UINT8,
          "the model's scores are neither bytes nor float32");
  const float mean = argc == 6 ? (float)atof(argv[4]) : 127.5f;
  const float scale = argc == 6 ? (float)atof(argv[5]) : 1 / 127.5f;
  feed(input, &picture, mean, scale);
  check(arenite_session_run(session));

  void* scores = malloc(output->size + 1);
  require(scores != NULL, "no memory");
  check(arenite_session_fetch(session, 0, scores, output->size));
  print_top(output, scores, output->type == ARENITE_FLOAT32 ? output->size / 4 : output->size,
            labels);

  free(scores);
  image_free(&picture);
  if (labels != NULL) { fclose(labels); }
  arenite_session_destroy(session);
  arenite_model_close(model);
  return 0;
}
