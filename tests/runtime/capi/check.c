/* What the tests run: a model by each way in, or every call with what is wrong. */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arenite.h"

static size_t num_allocations;
extern void* __libc_malloc(size_t size);
extern void* __libc_calloc(size_t count, size_t size);
extern void* __libc_realloc(void* memory, size_t size);
extern void* __libc_memalign(size_t alignment, size_t size);

static void note(void) { __atomic_add_fetch(&num_allocations, 1, __ATOMIC_RELAXED); }

/* These stand before the C library's, for every shared library of this process. */
void* malloc(size_t size) {
  note();
  return __libc_malloc(size);
}

void* calloc(size_t count, size_t size) {
  note();
  return __libc_calloc(count, size);
}

void* realloc(void* memory, size_t size) {
  note();
  return __libc_realloc(memory, size);
}

void* memalign(size_t alignment, size_t size) {
  note();
  return __libc_memalign(alignment, size);
}

void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void** memory, size_t alignment, size_t size) {
  *memory = memalign(alignment, size);
  return *memory == NULL ? ENOMEM : 0;
}

static void* aligned_to(size_t alignment, size_t size) {
  void* memory = NULL;
  if (posix_memalign(&memory, alignment, size > 0 ? size : 1) != 0) { exit(3); }
  return memory;
}

static void* aligned(size_t size) { return aligned_to(ARENITE_ALIGNMENT, size); }

static void* read_file(const char* path, size_t* size) {
  FILE* stream = fopen(path, "rb");
  if (stream == NULL) { exit(3); }
  fseek(stream, 0, SEEK_END);
  *size = (size_t)ftell(stream);
  rewind(stream);
  char* data = aligned(*size);
  if (fread(data, 1, *size, stream) != *size) { exit(3); }
  fclose(stream);
  return data;
}

static void check(arenite_status status) {
  if (status != ARENITE_OK) {
    fprintf(stderr, "%d: %s\n", (int)status, arenite_last_error());
    exit(1);
  }
}

static void describe(const char* role, const arenite_tensor* tensor) {
  printf("%s %s %s", role, tensor->name, arenite_type_name(tensor->type));
  for (size_t i = 0; i < tensor->rank; ++i) {
    printf(" %zu:%td", tensor->shape[i], tensor->strides[i]);
  }
  printf(" %g %d\n", (double)tensor->scale, (int)tensor->zero_point);
}

/* way INPUT OUTPUT: two runs, the states anew between them. */
static int run(const char* way, const char* path, const char* input, const char* output) {
  arenite_model* model = NULL;
  arenite_session* session = NULL;
  arenite_options options = ARENITE_OPTIONS_DEFAULT;
  size_t size = 0;
  void *file = NULL, *arena = NULL;
  if (strcmp(way, "memory") == 0) {
    file = read_file(path, &size);
    check(arenite_model_from_memory(file, size, &model));
  } else {
    check(arenite_model_open(path, &model));
  }
  arenite_buffer buffers[2] = {{NULL, 0}, {NULL, 0}};
  if (strcmp(way, "buffers") == 0) {
    /* The last memory is the caller's, the others are the library's. */
    const size_t last = arenite_model_num_memories(model) - 1;
    arenite_memory memory = ARENITE_MEMORY_INIT;
    check(arenite_model_memory(model, last, &memory));
    printf("memory %s %zu %zu %d\n", memory.name, memory.size, memory.alignment, memory.writable);
    arena = aligned_to(memory.alignment, memory.size);
    memset(arena, 0xa5, memory.size);
    buffers[last].data = arena;
    buffers[last].size = memory.size;
    options.buffers = buffers;
    options.num_buffers = last + 1;
  } else if (strstr(way, "arena") != NULL) {
    options.arena_size = arenite_model_arena_size(model);
    options.arena = arena = aligned(options.arena_size);
    memset(arena, 0xa5, options.arena_size);
  }
  if (strstr(way, "threads") != NULL) { options.threads = 2; }
  const size_t at_first = num_allocations;
  check(arenite_session_create(model, &options, &session));
  printf("counted %d\n", num_allocations > at_first);
  arenite_model_close(model);
  describe("input", arenite_session_input(session, 0));
  describe("output", arenite_session_output(session, 0));
  if (arena != NULL && options.arena != NULL) {
    const char* data = arenite_session_input(session, 0)->data;
    printf("inside %d\n", data >= (char*)arena && data < (char*)arena + options.arena_size);
  }
  arenite_resident held = ARENITE_RESIDENT_INIT;
  check(arenite_session_memory(session, &held));
  printf("held %lu %lu %lu %lu\n", (unsigned long)held.memories, (unsigned long)held.program,
         (unsigned long)held.weights, (unsigned long)held.kernels);
  const arenite_tensor* result = arenite_session_output(session, 0);
  const size_t result_size = result->size;
  char* fetched = aligned(result_size);
  char* fed = read_file(input, &size);
  const size_t before = num_allocations;
  for (int i = 0; i < 2; ++i) {
    check(arenite_session_reset(session));
    check(arenite_session_feed(session, 0, fed, size));
    check(arenite_session_run(session));
    check(arenite_session_fetch(session, 0, fetched, result_size));
  }
  printf("allocations %zu\n", num_allocations - before);
  arenite_session_destroy(session);
  FILE* stream = fopen(output, "wb");
  if (stream == NULL || fwrite(fetched, 1, result_size, stream) != result_size) { return 3; }
  fclose(stream);
  free(fetched);
  free(fed);
  free(file);
  free(arena);
  return 0;
}

static void report(const char* label, arenite_status status) {
  printf("%s\t%d\t%s\n", label, (int)status, status == ARENITE_OK ? "" : arenite_last_error());
}

/* PATH: opens a file that is wrong, from disk and from memory. */
static int open_wrong(const char* path) {
  arenite_model* model = (arenite_model*)1;
  report("file", arenite_model_open(path, &model));
  printf("model\t%d\t\n", model == NULL ? 0 : 1);
  arenite_model_close(model);
  FILE* stream = fopen(path, "rb");
  if (stream != NULL) {
    fclose(stream);
    size_t size;
    char* data = read_file(path, &size);
    report("memory", arenite_model_from_memory(data, size, &model));
    arenite_model_close(model);
    free(data);
  }
  return 0;
}

/* A caller of a later version. */
typedef struct newer_options {
  arenite_options known;
  size_t unknown;
} newer_options;

typedef struct newer_memory {
  arenite_memory known;
  size_t unknown;
} newer_memory;

/* Structs of other sizes, and memory of the caller. */
static void misuse_structs(const arenite_model* model, char* arena) {
  arenite_session* session = NULL;
  newer_options newer = {ARENITE_OPTIONS_DEFAULT, 0};
  newer.known.struct_size = sizeof newer;
  report("newer options", arenite_session_create(model, &newer.known, &session));
  arenite_session_destroy(session);
  newer.unknown = 1;
  report("newer options that are set", arenite_session_create(model, &newer.known, &session));

  arenite_options options = ARENITE_OPTIONS_DEFAULT;
  arenite_buffer buffer = {arena, arenite_model_arena_size(model)};
  options.buffers = &buffer;
  options.num_buffers = 2; /* which an older caller does not have */
  report("buffers of other memories", arenite_session_create(model, &options, &session));
  options.struct_size = offsetof(arenite_options, buffers);
  report("older options", arenite_session_create(model, &options, &session));
  arenite_session_destroy(session);
  options.struct_size = sizeof options;
  options.num_buffers = 1;
  options.arena = arena;
  report("buffers and an arena", arenite_session_create(model, &options, &session));
  options.arena = NULL;
  buffer.data = arena + 1;
  report("buffer misaligned", arenite_session_create(model, &options, &session));
  buffer.data = arena;
  --buffer.size;
  report("buffer too small", arenite_session_create(model, &options, &session));

  arenite_memory memory = ARENITE_MEMORY_INIT;
  report("no such memory", arenite_model_memory(model, 1, &memory));
  report("memory of null", arenite_model_memory(NULL, 0, &memory));
  report("memory to null", arenite_model_memory(model, 0, NULL));
  memory.struct_size = 0;
  report("memory of no size", arenite_model_memory(model, 0, &memory));
  newer_memory longer = {{sizeof longer, NULL, 0, 0, 0, 0}, 1};
  report("newer memory", arenite_model_memory(model, 0, &longer.known));
  if (longer.unknown != 0 || longer.known.struct_size != sizeof longer ||
      longer.known.size != arenite_model_arena_size(model)) {
    exit(4);
  }
  arenite_resident resident = ARENITE_RESIDENT_INIT;
  report("resident of null", arenite_session_memory(NULL, &resident));
}

/* PATH: every call with what is wrong. */
static int misuse(const char* path) {
  arenite_model* model = NULL;
  arenite_session* session = NULL;
  arenite_options options = ARENITE_OPTIONS_DEFAULT;
  char byte = 0;
  static char memory[128];
  report("open null", arenite_model_open(NULL, &model));
  report("open to null", arenite_model_open(path, NULL));
  report("memory null", arenite_model_from_memory(NULL, 1, &model));
  report("memory misaligned",
         arenite_model_from_memory(memory + (uintptr_t)memory % 2 + 1, 64, &model));
  report("session of null", arenite_session_create(NULL, NULL, &session));
  check(arenite_model_open(path, &model));
  report("session to null", arenite_session_create(model, NULL, NULL));
  options.struct_size = 1;
  report("options of another size", arenite_session_create(model, &options, &session));
  options.struct_size = sizeof options;
  options.threads = 100000;
  report("too many threads", arenite_session_create(model, &options, &session));
  options.threads = 0;
  options.arena_size = arenite_model_arena_size(model);
  char* arena = aligned(options.arena_size + ARENITE_ALIGNMENT);
  options.arena = arena + 1;
  report("arena misaligned", arenite_session_create(model, &options, &session));
  options.arena = arena;
  --options.arena_size;
  report("arena too small", arenite_session_create(model, &options, &session));
  misuse_structs(model, arena);
  check(arenite_session_create(model, NULL, &session));
  report("feed null", arenite_session_feed(NULL, 0, &byte, 1));
  report("feed from null",
         arenite_session_feed(session, 0, NULL, arenite_session_input(session, 0)->size));
  report("feed another size", arenite_session_feed(session, 0, &byte, 1));
  report("feed no such input", arenite_session_feed(session, 9, &byte, 1));
  report("fetch null", arenite_session_fetch(NULL, 0, &byte, 1));
  report("fetch another size", arenite_session_fetch(session, 0, &byte, 1));
  report("fetch no such output", arenite_session_fetch(session, 9, &byte, 1));
  report("run null", arenite_session_run(NULL));
  report("reset null", arenite_session_reset(NULL));
  printf("nothing\t%d\t%s%s\n",
         arenite_session_input(session, 9) == NULL && arenite_session_output(NULL, 0) == NULL &&
             arenite_session_num_inputs(NULL) == 0 && arenite_session_num_outputs(NULL) == 0 &&
             arenite_model_arena_size(NULL) == 0 && arenite_model_weights_size(NULL) == 0,
         arenite_model_name(NULL), arenite_type_name((arenite_type)99));
  arenite_session_destroy(session);
  arenite_session_destroy(NULL);
  arenite_model_close(model);
  arenite_model_close(NULL);
  free(arena);
  return 0;
}

/* PATH: a session of two threads in a child process. */
static int forked(const char* path) {
  arenite_model* model = NULL;
  arenite_session* session = NULL;
  arenite_options options = ARENITE_OPTIONS_DEFAULT;
  options.threads = 2;
  check(arenite_model_open(path, &model));
  check(arenite_session_create(model, &options, &session));
  check(arenite_session_run(session));
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    alarm(30); /* a wait without end is killed */
    const arenite_tensor* input = arenite_session_input(session, 0);
    char* bytes = calloc(1, input->size);
    report("run", arenite_session_run(session));
    report("feed", arenite_session_feed(session, 0, bytes, input->size));
    free(bytes);
    arenite_session_destroy(session);
    options.threads = 1;
    report("own", arenite_session_create(model, &options, &session));
    report("own run", arenite_session_run(session));
    arenite_session_destroy(session);
    arenite_model_close(model);
    return 0;
  }
  int status = 0;
  waitpid(child, &status, 0);
  check(arenite_session_run(session));
  arenite_session_destroy(session);
  arenite_model_close(model);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 9;
}

enum { STACK = 1 << 20, PAINT = 0x5A };

static unsigned char* run_top;

static void* run_painted(void* session) {
  unsigned char here = 0;
  run_top = &here;
  check(arenite_session_run(session));
  return NULL;
}

/* Prints the bytes of stack that a run takes, painted before. */
static int measure_stack(const char* path) {
  arenite_model* model;
  arenite_session* session;
  pthread_attr_t attributes;
  pthread_t thread;
  unsigned char* stack = aligned_to(4096, STACK);
  memset(stack, PAINT, STACK);
  check(arenite_model_open(path, &model));
  check(arenite_session_create(model, NULL, &session));
  if (pthread_attr_init(&attributes) != 0 ||
      pthread_attr_setstack(&attributes, stack, STACK) != 0 ||
      pthread_create(&thread, &attributes, run_painted, session) != 0) {
    return 3;
  }
  pthread_join(thread, NULL);
  const unsigned char* lowest = stack;
  while (*lowest == PAINT) { ++lowest; }
  printf("%zu\n", (size_t)(run_top - lowest));
  arenite_session_destroy(session);
  arenite_model_close(model);
  return 0;
}

/* resize PATH SIZE INPUT OUTPUT: a run at one size of the first dimension, after other sizes. */
static int resized(const char* path, const char* wanted, const char* input, const char* output) {
  arenite_model* model;
  arenite_session* session;
  arenite_dimension dimension = ARENITE_DIMENSION_INIT;
  check(arenite_model_open(path, &model));
  check(arenite_session_create(model, NULL, &session));
  report("first", arenite_model_dimension(model, 0, &dimension));
  printf("%s\t0\t%zu %zu %zu of %zu\n", dimension.name, dimension.low, dimension.high,
         dimension.step, arenite_model_num_dimensions(model));
  report("second", arenite_model_dimension(model, 1, &dimension));
  arenite_dimension cut = ARENITE_DIMENSION_INIT;
  cut.struct_size = 8;
  report("short", arenite_model_dimension(model, 0, &cut));
  const size_t size = (size_t)atoi(wanted), above = dimension.high + 1, huge = SIZE_MAX;
  size_t fed_size = 0;
  char* fed = read_file(input, &fed_size);
  const arenite_tensor* source = arenite_session_input(session, 0);
  const arenite_tensor* result = arenite_session_output(session, 0);
  char* fetched = aligned(result->size);
  const size_t before = num_allocations;
  for (size_t each = dimension.low; each <= dimension.high; each += dimension.step) {
    check(arenite_session_resize(session, &each, 1));
    check(arenite_session_run(session));
  }
  check(arenite_session_resize(session, &size, 1));
  check(arenite_session_feed(session, 0, fed, fed_size));
  check(arenite_session_run(session));
  check(arenite_session_fetch(session, 0, fetched, result->size));
  printf("allocations\t0\t%zu\n", num_allocations - before);
  report("above", arenite_session_resize(session, &above, 1));
  report("huge", arenite_session_resize(session, &huge, 1));
  report("none", arenite_session_resize(session, &size, 0));
  report("null", arenite_session_resize(session, NULL, 1));
  printf("size\t0\t%zu %zu, %zu B in, %zu B out\n", arenite_session_size(session, 0),
         arenite_session_size(session, 1), source->size, result->size);
  FILE* stream = fopen(output, "wb");
  if (stream == NULL || fwrite(fetched, 1, result->size, stream) != result->size) { return 3; }
  fclose(stream);
  free(fetched);
  free(fed);
  arenite_session_destroy(session);
  arenite_model_close(model);
  return 0;
}

/* One run on a row of ones times `value`, behind the rows that are held; the largest in `largest`.
 */
static arenite_status add_row(arenite_session* session, float value, size_t held, float* largest) {
  const size_t sizes[] = {1, held};
  const float row[4] = {value, value, value, value};
  float found[4];
  const arenite_status status = arenite_session_resize(session, sizes, 2);
  if (status != ARENITE_OK) { return status; }
  check(arenite_session_feed(session, 0, row, sizeof row));
  check(arenite_session_run(session));
  check(arenite_session_fetch(session, 0, found, sizeof found));
  *largest = found[0];
  return ARENITE_OK;
}

/* grow PATH: states that grow, of the second dimension. */
static int grow(const char* path) {
  arenite_model* model;
  arenite_session *session, *other;
  arenite_dimension dimension = ARENITE_DIMENSION_INIT;
  float largest = 0, again = 0;
  check(arenite_model_open(path, &model));
  check(arenite_session_create(model, NULL, &session));
  check(arenite_session_create(model, NULL, &other));
  check(arenite_model_dimension(model, 1, &dimension));
  printf("%s\t0\tto %zu, grows %d\n", dimension.name, dimension.high, dimension.grows);
  const size_t before = num_allocations;
  for (size_t i = 0; i <= dimension.high; ++i) {
    check(add_row(session, (float)(20 - i), arenite_session_held(session, 1), &largest));
  }
  printf("allocations\t0\t%zu\n", num_allocations - before);
  printf("held\t0\t%zu, %zu of the first, largest %.0f\n", arenite_session_held(session, 1),
         arenite_session_held(session, 0), largest);
  report("stale", arenite_session_run(session));
  report("full", add_row(session, 1, arenite_session_held(session, 1), &largest));
  printf("still\t0\t%zu\n", arenite_session_held(session, 1));
  const size_t size = arenite_session_states_size(session);
  char* saved = aligned(size);
  report("short", arenite_session_save_states(session, saved, size - 1));
  check(arenite_session_save_states(session, saved, size));
  check(arenite_session_load_states(other, saved, size));
  printf("loaded\t0\t%zu of %zu B\n", arenite_session_held(other, 1), size);
  check(add_row(other, 1, 2, &again)); /* behind the first two */
  printf("cut\t0\t%zu, largest %.0f\n", arenite_session_held(other, 1), again);
  saved[size - 1] ^= 1;
  report("damaged", arenite_session_load_states(other, saved, size));
  check(arenite_session_reset(other));
  printf("reset\t0\t%zu\n", arenite_session_held(other, 1));
  free(saved);
  arenite_session_destroy(other);
  arenite_session_destroy(session);
  arenite_model_close(model);
  return 0;
}

int main(int argc, char** argv) {
  if (argc == 6) { return resized(argv[2], argv[3], argv[4], argv[5]); }
  if (argc == 3 && strcmp(argv[1], "grow") == 0) { return grow(argv[2]); }
  if (argc == 3 && strcmp(argv[1], "stack") == 0) { return measure_stack(argv[2]); }
  if (argc == 3 && strcmp(argv[1], "forked") == 0) { return forked(argv[2]); }
  if (argc == 5) { return run(argv[1], argv[2], argv[3], argv[4]); }
  if (argc == 3) { return strcmp(argv[1], "open") == 0 ? open_wrong(argv[2]) : misuse(argv[2]); }
  printf("%s %u\n", arenite_version(), arenite_api_version());
  return 0;
}
