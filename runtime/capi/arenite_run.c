/* arenite-run: runs a model, or those of a system in turn, and prints time and outputs. */
#define _POSIX_C_SOURCE 200809L

#include <inttypes.h>
#include <limits.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "arenite.h"

enum { NUM_TOP = 5, MAX_RUNS = 1000000, PIECE = 4096 };

static const char usage[] =
    "usage: arenite-run MODEL.arena [--input FILE.raw]... [--output FILE.raw] [--runs N] "
    "[--threads N] [--size NAME=N]... [--check]\n"
    "\n"
    "  --input FILE   raw bytes of an input, with the model's axes; once for each input, in order\n"
    "                 (default: zeros); of a system those of all models\n"
    "  --output FILE  file for the outputs, one after another\n"
    "  --runs N       number of runs (default 1); each run feeds the inputs and resets the states\n"
    "  --threads N    number of compute threads (default 1)\n"
    "  --size NAME=N  value of a dimension, of a model for a range of sizes (default: the "
    "highest)\n"
    "  --check        compare the file with its checksums first\n"
    "  --help         print this text\n";

typedef struct arguments {
  const char* model;
  const char** inputs;
  size_t num_inputs;
  const char* output;
  unsigned runs;
  unsigned threads;
  int is_checked;
  const char** sizes; /* "seq=17" */
  size_t num_sizes;
} arguments;

/* Prints an error and returns the exit status. */
static int failed(const char* label, const char* reason) {
  fprintf(stderr, "error: %s: %s\n", label, reason);
  return 1;
}

static int parse_count(const char* text, unsigned limit, unsigned* count) {
  char* end;
  const long value = strtol(text, &end, 10);
  if (end == text || *end != '\0' || value < 1 || value > (long)limit) {
    fprintf(stderr, "error: %s: not a number from 1 to %u\n", text, limit);
    return 0;
  }
  *count = (unsigned)value;
  return 1;
}

static int parse(int argc, char** argv, arguments* given) {
  for (int i = 1; i < argc; ++i) {
    const char* word = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : NULL;
    if (word[0] != '-' && given->model == NULL) {
      given->model = word;
      continue;
    }
    if (strcmp(word, "--check") == 0) {
      given->is_checked = 1;
      continue;
    }
    if (value == NULL) { return 0; }
    ++i;
    if (strcmp(word, "--input") == 0) {
      given->inputs[given->num_inputs++] = value;
    } else if (strcmp(word, "--output") == 0) {
      given->output = value;
    } else if (strcmp(word, "--size") == 0) {
      given->sizes[given->num_sizes++] = value;
    } else if (strcmp(word, "--runs") == 0) {
      if (!parse_count(value, MAX_RUNS, &given->runs)) { return 0; }
    } else if (strcmp(word, "--threads") == 0) {
      if (!parse_count(value, 256, &given->threads)) { return 0; }
    } else {
      return 0;
    }
  }
  return given->model != NULL;
}

/* Sets the sizes that are given; others have their highest values, and states that grow hold
 * nothing. */
static int resize(const arenite_model* model, arenite_session* session, const arguments* given) {
  const size_t count = arenite_model_num_dimensions(model);
  size_t* sizes = calloc(count + 1, sizeof *sizes);
  size_t num_found = 0;
  if (sizes == NULL) { return failed(given->model, "no memory for the sizes"); }
  for (size_t i = 0; i < count; ++i) {
    arenite_dimension dimension = ARENITE_DIMENSION_INIT;
    if (arenite_model_dimension(model, i, &dimension) != ARENITE_OK) { return 1; }
    sizes[i] = dimension.grows ? 0 : dimension.high;
    const size_t length = strlen(dimension.name);
    for (size_t k = 0; k < given->num_sizes; ++k) {
      const char* text = given->sizes[k];
      unsigned size;
      if (strncmp(text, dimension.name, length) != 0 || text[length] != '=') { continue; }
      if (!parse_count(text + length + 1, INT_MAX, &size)) { return 1; }
      if (dimension.is_counted) {
        return failed(given->model, "a --size names a dimension that each run counts");
      }
      sizes[i] = size;
      ++num_found;
    }
  }
  if (num_found < given->num_sizes) {
    return failed(given->model, "a --size names no dimension of the model, or gives no NAME=N");
  }
  const arenite_status status = arenite_session_resize(session, sizes, count);
  free(sizes);
  return status == ARENITE_OK ? 0 : failed(given->model, arenite_last_error());
}

/* Prints the sizes of the last run. */
static void print_sizes(const arenite_model* model, const arenite_session* session) {
  for (size_t i = 0; i < arenite_model_num_dimensions(model); ++i) {
    arenite_dimension dimension = ARENITE_DIMENSION_INIT;
    if (arenite_model_dimension(model, i, &dimension) != ARENITE_OK) { return; }
    printf("size     %s: %zu of %zu to %zu%s\n", dimension.name, arenite_session_size(session, i),
           dimension.low, dimension.high, dimension.is_counted ? ", counted" : "");
  }
}

static double now_ms(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static float half_to_float(uint16_t half) {
  const int exponent = half >> 10 & 31;
  const float fraction = (float)(half & 1023);
  const float magnitude = exponent == 31  ? (half & 1023 ? NAN : INFINITY)
                          : exponent == 0 ? ldexpf(fraction, -24)
                                          : ldexpf(1024.0f + fraction, exponent - 25);
  return half >> 15 ? -magnitude : magnitude;
}

/* Element `index` of a contiguous array, as the number that it stands for. */
static double element(const arenite_tensor* tensor, const void* data, size_t index) {
  double value = 0;
  switch (tensor->type) {
    case ARENITE_FLOAT32: return ((const float*)data)[index];
    case ARENITE_FLOAT16: return half_to_float(((const uint16_t*)data)[index]);
    case ARENITE_INT8: value = ((const int8_t*)data)[index]; break;
    case ARENITE_UINT8:
    case ARENITE_BOOLEAN: value = ((const uint8_t*)data)[index]; break;
    case ARENITE_INT16: value = ((const int16_t*)data)[index]; break;
    case ARENITE_INT32: value = ((const int32_t*)data)[index]; break;
    case ARENITE_FLOAT64: value = ((const double*)data)[index]; break;
    case ARENITE_INT64: value = (double)((const int64_t*)data)[index]; break;
  }
  return tensor->scale > 0 ? (value - tensor->zero_point) * tensor->scale : value;
}

static size_t element_size(const arenite_tensor* tensor) {
  size_t count = 1;
  for (size_t axis = 0; axis < tensor->rank; ++axis) { count *= tensor->shape[axis]; }
  return count > 0 ? tensor->size / count : 1;
}

/* The sessions of a file: one, or those of a system in the order of their steps. */
typedef struct sessions {
  arenite_system* system; /* null for a single model */
  arenite_session* single;
  size_t count;
} sessions;

static arenite_session* session_at(const sessions* all, size_t index) {
  return all->system != NULL ? arenite_system_session(all->system, index) : all->single;
}

static arenite_status create(const arenite_model* model, const arenite_options* options,
                             sessions* all) {
  const arenite_status status = arenite_system_create(model, options, &all->system);
  if (status == ARENITE_OK) { all->count = arenite_system_num_sessions(all->system); }
  return status == ARENITE_ERROR_UNSUPPORTED ? arenite_session_create(model, options, &all->single)
                                             : status;
}

static void destroy(sessions* all) {
  arenite_system_destroy(all->system);
  arenite_session_destroy(all->single);
}

/* What the names of inputs and outputs begin with: of a system the name of their model. */
static void print_model(const sessions* all, size_t index) {
  if (all->system != NULL) { printf("%s.", arenite_session_name(session_at(all, index))); }
}

static void print_tensor(const char* role, const sessions* all, size_t index,
                         const arenite_tensor* tensor) {
  printf("%-8s ", role);
  print_model(all, index);
  printf("%s: %s ", tensor->name, arenite_type_name(tensor->type));
  for (size_t axis = 0; axis < tensor->rank; ++axis) {
    printf("%s%zu", axis > 0 ? "x" : "", tensor->shape[axis]);
  }
  printf(", %zu B\n", tensor->size);
}

/* The range of an output, and of its largest numbers where they are. */
static void print_values(const arenite_tensor* tensor, const void* data) {
  const size_t count = tensor->size / element_size(tensor);
  size_t top[NUM_TOP];
  size_t num_top = 0;
  double least = INFINITY, most = -INFINITY, sum = 0;
  for (size_t i = 0; i < count; ++i) {
    const double value = element(tensor, data, i);
    least = value < least ? value : least;
    most = value > most ? value : most;
    sum += value;
    size_t place = num_top;
    while (place > 0 && element(tensor, data, top[place - 1]) < value) { --place; }
    if (place < NUM_TOP) {
      num_top += num_top < NUM_TOP;
      memmove(top + place + 1, top + place, (num_top - place - 1) * sizeof *top);
      top[place] = i;
    }
  }
  if (count == 0) { return; }
  printf("         least %.6g, most %.6g, mean %.6g\n         top", least, most,
         sum / (double)count);
  for (size_t i = 0; i < num_top; ++i) {
    printf(" [%zu] %.6g", top[i], element(tensor, data, top[i]));
  }
  printf("\n");
}

/* Where an input comes from; no stream: zeros. */
typedef struct source {
  const char* path;
  FILE* stream;
} source;

/* Reads an input to where the session has it, piece by piece: a whole array of it would be memory
 * that the model does not need. */
static int feed(const source* from, const arenite_tensor* tensor) {
  const size_t size = element_size(tensor), rank = tensor->rank;
  const size_t length = rank > 0 ? tensor->shape[rank - 1] : 1;
  const ptrdiff_t stride = rank > 0 ? tensor->strides[rank - 1] : 0;
  const size_t num_lines = length > 0 ? tensor->size / size / length : 0;
  char piece[PIECE];
  memset(piece, 0, sizeof piece);
  if (from->stream != NULL && fseek(from->stream, 0, SEEK_SET) != 0) {
    return failed(from->path, "cannot be read again before each run");
  }
  int is_whole = 1;
  for (size_t line = 0; line < num_lines && is_whole; ++line) {
    char* to = tensor->data;
    for (size_t axis = rank - 1, rest = line; rank > 0 && axis-- > 0;) {
      to += (ptrdiff_t)(rest % tensor->shape[axis]) * tensor->strides[axis];
      rest /= tensor->shape[axis];
    }
    for (size_t done = 0; done < length && is_whole;) {
      const size_t left = length - done, most = sizeof piece / size;
      const size_t count = left < most ? left : most;
      is_whole = from->stream == NULL || fread(piece, size, count, from->stream) == count;
      for (size_t i = 0; i < count; ++i, ++done) {
        memcpy(to + (ptrdiff_t)done * stride, piece + i * size, size);
      }
    }
  }
  if (!is_whole || (from->stream != NULL && fgetc(from->stream) != EOF)) {
    fprintf(stderr, "error: %s: input %s has %zu B, not this file's\n", from->path, tensor->name,
            tensor->size);
    return 1;
  }
  return 0;
}

/* What is fed before each run: the files, then zeros. Null on failure. */
static source* open_inputs(const sessions* all, const arguments* given) {
  size_t count = 0;
  for (size_t k = 0; k < all->count; ++k) {
    count += arenite_session_num_inputs(session_at(all, k));
  }
  source* sources = calloc(count + 1, sizeof *sources);
  if (sources == NULL || given->num_inputs > count) {
    fprintf(stderr, "error: the model has %zu inputs, not %zu\n", count, given->num_inputs);
    return NULL;
  }
  for (size_t i = 0; i < given->num_inputs; ++i) {
    sources[i].path = given->inputs[i];
    sources[i].stream = fopen(sources[i].path, "rb");
    if (sources[i].stream == NULL) {
      failed(sources[i].path, "cannot be opened");
      return NULL;
    }
  }
  for (size_t k = 0; k < all->count; ++k) {
    const arenite_session* session = session_at(all, k);
    for (size_t i = 0; i < arenite_session_num_inputs(session); ++i) {
      print_tensor("input", all, k, arenite_session_input(session, i));
    }
  }
  return sources;
}

/* Prints the outputs of a model, and adds them to a file. */
static int print_outputs(const sessions* all, size_t index, const char* path) {
  const arenite_session* session = session_at(all, index);
  FILE* stream = path != NULL ? fopen(path, index > 0 ? "ab" : "wb") : NULL;
  if (path != NULL && stream == NULL) { return failed(path, "cannot be written"); }
  for (size_t i = 0; i < arenite_session_num_outputs(session); ++i) {
    const arenite_tensor* tensor = arenite_session_output(session, i);
    void* data = malloc(tensor->size + 1);
    if (data == NULL || arenite_session_fetch(session, i, data, tensor->size) != ARENITE_OK) {
      return failed(tensor->name, data == NULL ? "no memory" : arenite_last_error());
    }
    print_tensor("output", all, index, tensor);
    print_values(tensor, data);
    if (stream != NULL && fwrite(data, 1, tensor->size, stream) != tensor->size) {
      return failed(path, "cannot be written");
    }
    free(data);
  }
  return stream != NULL && fclose(stream) != 0 ? failed(path, "cannot be written") : 0;
}

/* Runs a model, of a system one that is started, and adds the time that it takes. */
static int run_one(const arenite_model* model, const sessions* all, size_t index,
                   const source* sources, const arguments* given, double* spent) {
  arenite_session* session = session_at(all, index);
  if (resize(model, session, given) != 0) { return 1; }
  if (all->system != NULL && arenite_session_start(session) != ARENITE_OK) {
    return failed(given->model, arenite_last_error());
  }
  for (size_t i = 0; i < arenite_session_num_inputs(session); ++i) {
    if (feed(&sources[i], arenite_session_input(session, i)) != 0) { return 1; }
  }
  const double begun = now_ms();
  if (arenite_session_run(session) != ARENITE_OK) {
    return failed(given->model, arenite_last_error());
  }
  *spent += now_ms() - begun;
  return 0;
}

/* Runs all models so often. The next model of a system may overwrite outputs, so they are printed
 * when it has run for the last time. */
static int time_runs(const arenite_model* model, const sessions* all, const source* sources,
                     const arguments* given) {
  double* spent = calloc(given->runs, sizeof *spent);
  if (spent == NULL) { return failed(given->model, "no memory for the times"); }
  for (unsigned run = 0; run < given->runs; ++run) {
    if (all->system != NULL) { arenite_system_finish(all->system); }
    arenite_session_reset(session_at(all, 0));
    const source* its = sources;
    for (size_t k = 0; k < all->count; ++k) {
      if (run_one(model, all, k, its, given, &spent[run]) != 0) { return 1; }
      its += arenite_session_num_inputs(session_at(all, k));
      const int is_last = all->system != NULL && run + 1 == given->runs;
      if (is_last && print_outputs(all, k, given->output) != 0) { return 1; }
    }
  }
  qsort(spent, given->runs, sizeof *spent, ascending);
  const double median = (spent[(given->runs - 1) / 2] + spent[given->runs / 2]) / 2;
  printf("time     median %.3f ms, least %.3f ms of %u\n", median, spent[0], given->runs);
  free(spent);
  return 0;
}

/* The most memory that the process has had: "VmHWM:    14084 kB" in a file of Linux. */
static void print_memory(void) {
  FILE* stream = fopen("/proc/self/status", "r");
  char line[128];
  while (stream != NULL && fgets(line, sizeof line, stream) != NULL) {
    unsigned long peak;
    if (sscanf(line, "VmHWM: %lu", &peak) == 1) {
      printf("memory   %lu KiB resident at most\n", peak);
    }
  }
  if (stream != NULL) { fclose(stream); }
}

static void print_memories(const arenite_model* model) {
  const size_t count = arenite_model_num_memories(model);
  printf("arena    %zu B\n", arenite_model_arena_size(model));
  for (size_t i = 0; count > 1 && i < count; ++i) {
    arenite_memory memory = ARENITE_MEMORY_INIT;
    if (arenite_model_memory(model, i, &memory) == ARENITE_OK) {
      printf("         %s: %zu B\n", memory.name, memory.size);
    }
  }
}

static void print_resident(const arenite_session* session) {
  arenite_resident held = ARENITE_RESIDENT_INIT;
  if (arenite_session_memory(session, &held) == ARENITE_OK) {
    printf("kernels  %" PRIu64 " B\n", held.kernels);
    printf("resident %" PRIu64 " B\n", held.memories + held.program + held.weights_resident +
                                           held.decoded + held.kernels + held.other);
  }
}

int main(int argc, char** argv) {
  if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
    fputs(usage, stdout);
    return 0;
  }
  arguments given = {NULL, NULL, 0, NULL, 1, 1, 0, NULL, 0};
  given.inputs = calloc((size_t)argc + 1, sizeof *given.inputs);
  given.sizes = calloc((size_t)argc + 1, sizeof *given.sizes);
  if (given.inputs == NULL || given.sizes == NULL || !parse(argc, argv, &given)) {
    fputs(usage, stderr);
    return 2;
  }
  arenite_model* model;
  sessions all = {NULL, NULL, 1};
  arenite_options options = ARENITE_OPTIONS_DEFAULT;
  options.threads = given.threads;
  const double begun = now_ms();
  if (arenite_model_open(given.model, &model) != ARENITE_OK ||
      (given.is_checked && arenite_model_check(model) != ARENITE_OK) ||
      create(model, &options, &all) != ARENITE_OK) {
    return failed(given.model, arenite_last_error());
  }
  printf("model    %s\n", arenite_model_name(model));
  print_memories(model);
  printf("weights  %zu B\n", arenite_model_weights_size(model));
  print_resident(session_at(&all, 0));
  printf("load     %.3f ms\n", now_ms() - begun);
#ifdef __GLIBC__
  malloc_trim(0); /* what it took to check the file, before weights are read */
#endif
  for (size_t k = 0; k < all.count; ++k) {
    if (resize(model, session_at(&all, k), &given) != 0) { return 1; }
  }
  source* sources = open_inputs(&all, &given);
  if (sources == NULL || time_runs(model, &all, sources, &given) != 0) { return 1; }
  print_sizes(model, session_at(&all, 0));
  if (all.system == NULL && print_outputs(&all, 0, given.output) != 0) { return 1; }
  print_memory();
  for (size_t i = 0; i < given.num_inputs; ++i) { fclose(sources[i].stream); }
  free(sources);
  free(given.inputs);
  free(given.sizes);
  destroy(&all);
  arenite_model_close(model);
  return 0;
}
