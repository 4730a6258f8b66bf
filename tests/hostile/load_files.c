/* Loads and runs each of the files whose names it reads, which may be refused, and prints how
 * many there were and how many ran.
 *
 * Every file and every arena has memory of its own and not a byte more, so that a memory checker
 * sees who reads or writes behind it. */
#define _POSIX_C_SOURCE 200809L

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arenite.h"

enum { LARGEST_ARENA = 1 << 26 };

static void* aligned(size_t size) {
  void* memory = NULL;
  if (posix_memalign(&memory, ARENITE_ALIGNMENT, size > 0 ? size : 1) != 0) { exit(3); }
  memset(memory, 0, size);
  return memory;
}

static void* read_file(const char* path, size_t* size) {
  FILE* stream = fopen(path, "rb");
  if (stream == NULL || fseek(stream, 0, SEEK_END) != 0) { exit(3); }
  *size = (size_t)ftell(stream);
  rewind(stream);
  char* data = aligned(*size);
  if (fread(data, 1, *size, stream) != *size) { exit(3); }
  fclose(stream);
  return data;
}

static int runs(const arenite_model* model) {
  const size_t arena_size = arenite_model_arena_size(model);
  if (arena_size > LARGEST_ARENA) { return 0; }
  arenite_options options = ARENITE_OPTIONS_DEFAULT;
  options.arena = aligned(arena_size);
  options.arena_size = arena_size;
  arenite_session* session = NULL;
  int has_run = 0;
  if (arenite_session_create(model, &options, &session) == ARENITE_OK) {
    has_run = arenite_session_run(session) == ARENITE_OK;
    arenite_session_destroy(session);
  }
  free(options.arena);
  return has_run;
}

int main(void) {
  char path[4096];
  size_t num_files = 0;
  size_t num_run = 0;
  while (fgets(path, sizeof path, stdin) != NULL) {
    path[strcspn(path, "\n")] = '\0';
    size_t size = 0;
    void* data = read_file(path, &size);
    arenite_model* model = NULL;
    if (arenite_model_from_memory(data, size, &model) == ARENITE_OK) {
      num_run += (size_t)runs(model);
      arenite_model_close(model);
    }
    free(data);
    ++num_files;
  }
  printf("%zu files, %zu ran\n", num_files, num_run);
  return 0;
}
