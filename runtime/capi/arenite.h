/* Arenite: runs a model with every tensor at its planned offset in an arena.
 *
 *   arenite_model *model;
 *   arenite_session *session;
 *   if (arenite_model_open("model.arena", &model) != ARENITE_OK ||
 *       arenite_session_create(model, NULL, &session) != ARENITE_OK) {
 *     fprintf(stderr, "%s\n", arenite_last_error());
 *     exit(1);
 *   }
 *   arenite_session_feed(session, 0, pixels, sizeof pixels);
 *   arenite_session_run(session);
 *   arenite_session_fetch(session, 0, scores, sizeof scores);
 *   arenite_session_destroy(session);
 *   arenite_model_close(model);
 *
 * The command `arenite build` makes .arena files. Creating a session allocates memory, prepares
 * the kernels and reports every error; a run allocates nothing.
 *
 * Threads: sessions may share a model; calls on one session must not overlap. After fork() the
 * child may use only sessions without threads, and may destroy all. A session of a model that
 * spills tensors has a thread for this and a temporary file in $TMPDIR or /tmp. A session that
 * streams weights has such a thread, too, if the process may run on more than one processor.
 * C99; no exception leaves this library.
 */
#ifndef ARENITE_H
#define ARENITE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define ARENITE_API __attribute__((visibility("default")))
#else
#define ARENITE_API
#endif

/* Incremented by every change of this header that programs notice. */
#define ARENITE_API_VERSION 2

/* Alignment, in bytes, of memory that is passed to the library. */
#define ARENITE_ALIGNMENT 64

typedef enum arenite_status {
  ARENITE_OK = 0,
  ARENITE_ERROR_ARGUMENT = 1,    /* a null pointer, a wrong index or size */
  ARENITE_ERROR_FILE = 2,        /* the file cannot be opened or mapped, or a spill file written */
  ARENITE_ERROR_FORMAT = 3,      /* not an .arena file, or a damaged one */
  ARENITE_ERROR_VERSION = 4,     /* an .arena file of another version */
  ARENITE_ERROR_UNSUPPORTED = 5, /* a step needs ONNX Runtime: use Python */
  ARENITE_ERROR_MEMORY = 6,      /* out of memory, or a buffer is too small or misaligned */
  ARENITE_ERROR_INTERNAL = 7,    /* a bug of this library */
  ARENITE_ERROR_FORKED = 8,      /* a session with threads was used after fork() */
  ARENITE_ERROR_SIZE = 9,        /* a size is outside of the range of its dimension */
  ARENITE_ERROR_STATES = 10,     /* saved states are damaged, or of another model */
  ARENITE_ERROR_ORDER = 11       /* a model of a system cannot run now, or no run has begun */
} arenite_status;

typedef enum arenite_type {
  ARENITE_FLOAT32 = 0,
  ARENITE_FLOAT16 = 1,
  ARENITE_INT8 = 2,
  ARENITE_UINT8 = 3,
  ARENITE_INT16 = 4,
  ARENITE_INT32 = 5,
  ARENITE_INT64 = 6,
  ARENITE_BOOLEAN = 7, /* one byte, 0 or 1 */
  ARENITE_FLOAT64 = 8
} arenite_type;

/* An open file: a copy of its program, and its weights, mapped. Writing over the file changes the
 * weights of sessions, and truncating it ends the process: replace files by renaming. */
typedef struct arenite_model arenite_model;
/* A model with its memory, ready to run. */
typedef struct arenite_session arenite_session;
/* Several models in one arena (arenite_system_create). */
typedef struct arenite_system arenite_system;

/* An input or output with the axes of the model. Element (i, j, ...) lies at
 * (char *)data + i * strides[0] + j * strides[1] + ...: images are always stored channels last, so
 * strides may differ from those of a contiguous array. A quantised number q stands for
 * (q - zero_point) * scale. The library owns the struct, which is valid as long as its session; its
 * shape, strides and size are those of the present sizes (arenite_session_resize). */
typedef struct arenite_tensor {
  const char* name;
  arenite_type type;
  size_t rank;
  const size_t* shape;      /* elements, outermost first */
  const ptrdiff_t* strides; /* bytes */
  void* data;               /* in the arena; do not write an output that is a constant */
  size_t size;              /* bytes */
  float scale;              /* 0 if it is not quantised */
  int32_t zero_point;
} arenite_tensor;

/* Structs of the caller begin with their size, `sizeof` at the caller's compile time, and newer
 * versions append members. For a caller with an older header, missing members have the default 0.
 * For a caller with a newer header, members that this library does not know must be 0 in a struct
 * that the library reads (otherwise ARENITE_ERROR_ARGUMENT), and are set to 0 in one that it
 * fills. */

/* A memory of a model. Most models have one, the arena. */
typedef struct arenite_memory {
  size_t struct_size; /* sizeof(arenite_memory) */
  const char* name;   /* valid as long as the model is open */
  size_t size;        /* bytes to supply: the plan's height and slack that kernels may read */
  size_t alignment;   /* of its address, in bytes */
  int writable;       /* 0: the caller fills it, and no step writes to it */
  int spilled;        /* 1: holds spilled tensors; the library uses a file */
} arenite_memory;

#define ARENITE_MEMORY_INIT {sizeof(arenite_memory), NULL, 0, 0, 0, 0}

/* Memory of the caller. */
typedef struct arenite_buffer {
  void* data;  /* null: the library allocates it */
  size_t size; /* bytes */
} arenite_buffer;

/* How a session runs. Begin with ARENITE_OPTIONS_DEFAULT. */
typedef struct arenite_options {
  size_t struct_size; /* sizeof(arenite_options) */
  unsigned threads;   /* number of compute threads, including the caller's; 0 means 1 */
  void* arena;        /* for a model with one memory; null: the library allocates it */
  size_t arena_size;  /* bytes, at least arenite_model_arena_size() */
  /* Since version 2: a buffer for each memory of the model, in its order, instead of `arena`. Null:
   * the library allocates all. Read only during the call. */
  const arenite_buffer* buffers;
  size_t num_buffers;
} arenite_options;

#define ARENITE_OPTIONS_DEFAULT {sizeof(arenite_options), 1, NULL, 0, NULL, 0}

/* Bytes that a session holds, without threads and their stacks. */
typedef struct arenite_resident {
  size_t struct_size;        /* sizeof(arenite_resident) */
  uint64_t memories;         /* of the model, allocated by the library or the caller */
  uint64_t program;          /* a copy of the program in the file */
  uint64_t weights;          /* all weights of the file */
  uint64_t weights_resident; /* the part of them that runs read */
  uint64_t decoded;          /* decoded constants and decoders */
  uint64_t kernels;          /* packed weights, tables and steps */
  uint64_t other;            /* descriptions of tensors, inputs and outputs */
} arenite_resident;

#define ARENITE_RESIDENT_INIT {sizeof(arenite_resident), 0, 0, 0, 0, 0, 0, 0}

/* A named size of a model for a range of sizes: low, low + step and so on up to high. */
typedef struct arenite_dimension {
  size_t struct_size; /* sizeof(arenite_dimension) */
  const char* name;   /* valid as long as the model is open */
  size_t low;
  size_t high;
  size_t step;
  int is_counted; /* each run counts it, as the boxes of a detector: it cannot be set */
  /* It counts the tokens or other rows that states hold, which each run adds to. */
  int grows;
} arenite_dimension;

#define ARENITE_DIMENSION_INIT {sizeof(arenite_dimension), NULL, 0, 0, 0, 0, 0}

/* Version of the library, such as "0.1.0". */
ARENITE_API const char* arenite_version(void);
/* ARENITE_API_VERSION of the loaded library. */
ARENITE_API unsigned arenite_api_version(void);

/* The message of this thread's last failed call; "" if none has failed. Valid until the next
 * failure. */
ARENITE_API const char* arenite_last_error(void);
/* Name of an element type, such as "float32"; "unknown" for another number. */
ARENITE_API const char* arenite_type_name(arenite_type type);

/* Maps a file. On failure *model is null. */
ARENITE_API arenite_status arenite_model_open(const char* path, arenite_model** model);
/* Opens a file in memory, aligned to ARENITE_ALIGNMENT. The bytes are not copied: keep them
 * unchanged until the model and its sessions are gone. On failure *model is null. */
ARENITE_API arenite_status arenite_model_from_memory(const void* data, size_t size,
                                                     arenite_model** model);
/* Reads the whole file and compares it with its checksums: ARENITE_ERROR_FORMAT if it is damaged.
 * Opening a model only ensures that running it is safe, and does not read the weights. */
ARENITE_API arenite_status arenite_model_check(const arenite_model* model);
/* Closes a model; its sessions stay valid. Null is ignored. Do not use or close a closed model
 * again. */
ARENITE_API void arenite_model_close(arenite_model* model);
ARENITE_API const char* arenite_model_name(const arenite_model* model);
/* Bytes to supply for the arena: the plan's height and slack that kernels may read. For a model
 * with several memories, the sum of those that do not hold spilled tensors. */
ARENITE_API size_t arenite_model_arena_size(const arenite_model* model);
/* The number of memories of a model, 1 to 16. */
ARENITE_API size_t arenite_model_num_memories(const arenite_model* model);
/* Fills the struct; set its struct_size first. */
ARENITE_API arenite_status arenite_model_memory(const arenite_model* model, size_t index,
                                                arenite_memory* memory);
/* The number of dimensions of a model for a range of sizes; 0 if all shapes are fixed. */
ARENITE_API size_t arenite_model_num_dimensions(const arenite_model* model);
/* Fills the struct; set its struct_size first. */
ARENITE_API arenite_status arenite_model_dimension(const arenite_model* model, size_t index,
                                                   arenite_dimension* dimension);
/* Bytes of the weights in the file. */
ARENITE_API size_t arenite_model_weights_size(const arenite_model* model);

/* Allocates the memories and prepares every kernel; null options are the default. Memory of the
 * caller is in use until the session is destroyed. On failure *session is null. */
ARENITE_API arenite_status arenite_session_create(const arenite_model* model,
                                                  const arenite_options* options,
                                                  arenite_session** session);
/* Null is ignored. Do not use or destroy a destroyed session again. */
ARENITE_API void arenite_session_destroy(arenite_session* session);
/* Fills the struct; set its struct_size first. */
ARENITE_API arenite_status arenite_session_memory(const arenite_session* session,
                                                  arenite_resident* resident);

ARENITE_API size_t arenite_session_num_inputs(const arenite_session* session);
ARENITE_API size_t arenite_session_num_outputs(const arenite_session* session);
/* Null if the index is out of range. Write an input before each run, which may reuse its bytes; an
 * output holds its result until the next run. */
ARENITE_API const arenite_tensor* arenite_session_input(const arenite_session* session,
                                                        size_t index);
ARENITE_API const arenite_tensor* arenite_session_output(const arenite_session* session,
                                                         size_t index);

/* Sets the value of each dimension of the model, in its order: `count` is their number. A session
 * begins with the highest. Afterwards the structs of inputs and outputs, which stay where they are,
 * have the shapes of these sizes; feed all inputs again. States whose shapes change are reset, and
 * a run that was started is given up.
 * The value of a dimension that each run counts is ignored.
 * Allocates nothing. On failure, ARENITE_ERROR_SIZE for a value outside of its range, the sizes are
 * as before. */
ARENITE_API arenite_status arenite_session_resize(arenite_session* session, const size_t* sizes,
                                                  size_t count);
/* The present value of a dimension; 0 if the index is out of range. */
ARENITE_API size_t arenite_session_size(const arenite_session* session, size_t index);

/* Copies a contiguous array with the model's axes into an input, or an output into such an array.
 * `size` is the size of the array and must equal the tensor's. */
ARENITE_API arenite_status arenite_session_feed(arenite_session* session, size_t index,
                                                const void* data, size_t size);
ARENITE_API arenite_status arenite_session_fetch(const arenite_session* session, size_t index,
                                                 void* data, size_t size);

/* Runs the model once; feed all inputs before each run. Outputs whose size depends on data have the
 * shape of this run then. */
ARENITE_API arenite_status arenite_session_run(arenite_session* session);
/* A run in parts: starts one, and runs so many steps of it. *is_done becomes 1 with the last one.
 * Of a single model, arenite_session_run does both. ARENITE_ERROR_ORDER if no run has begun. */
ARENITE_API arenite_status arenite_session_start(arenite_session* session);
ARENITE_API arenite_status arenite_session_advance(arenite_session* session, size_t steps,
                                                   int* is_done);
/* Gives up the run that was started. A model of a system needs nothing any more: call it, too, if
 * the model is left out. */
ARENITE_API arenite_status arenite_session_skip(arenite_session* session);
/* Name of the model; of a system, that in its description. Valid as long as the session. */
ARENITE_API const char* arenite_session_name(const arenite_session* session);
/* Resets states to their initial values, and what they hold of dimensions that grow to 0. */
ARENITE_API arenite_status arenite_session_reset(arenite_session* session);

/* For models whose states grow, such as decoders with a cache of tokens. A session
 * begins with none. A run adds its tokens; set the sizes again before the inputs of the next one,
 * that of a dimension that grows to the number of tokens held, or to fewer to drop the last ones:
 * otherwise the run is refused with ARENITE_ERROR_SIZE, and so is a number beyond the range, when
 * the states are full. */
/* How much states hold of a dimension that grows; 0 for another. */
ARENITE_API size_t arenite_session_held(const arenite_session* session, size_t index);
/* Bytes that arenite_session_save_states writes. */
ARENITE_API size_t arenite_session_states_size(const arenite_session* session);
/* Writes the states, so that a session of the same model, in any process, can go on from them.
 * `size` is that of the array. */
ARENITE_API arenite_status arenite_session_save_states(const arenite_session* session, void* data,
                                                       size_t size);
/* Reads them. All is checked first: on failure the states are as before. */
ARENITE_API arenite_status arenite_session_load_states(arenite_session* session, const void* data,
                                                       size_t size);

/* Opens the models of a file that `arenite system` wrote. They share one arena, that of the
 * options; those that run at once have compute threads of their own. Each is a session, which the
 * system owns. On failure *system is null; ARENITE_ERROR_UNSUPPORTED for a file of one model.
 *
 * Start a model before its inputs are written, then feed and run it:
 *
 *   arenite_session *detector = arenite_system_find(system, "detector");
 *   arenite_session_start(detector);
 *   arenite_session_feed(detector, 0, pixels, sizeof pixels);
 *   arenite_session_run(detector);
 *
 * ARENITE_ERROR_ORDER, by start, if the model would overwrite what another still needs or reads
 * what is not there, and by feed and run, if it was not started; nothing has changed then. An
 * output stays while it is kept, or read by a model that has neither run nor been skipped.
 *
 * Of a model for a range of sizes call arenite_session_resize before it is started, with the sizes
 * of all models of the file; it changes those of the models that do not run at once with it, too.
 *
 * Only models that the schedule lets run at once may be called from several threads at a time.
 * arenite_session_reset, and saved states, are for the states of all models. */
ARENITE_API arenite_status arenite_system_create(const arenite_model* model,
                                                 const arenite_options* options,
                                                 arenite_system** system);
/* Its sessions are gone with it. Null is ignored. */
ARENITE_API void arenite_system_destroy(arenite_system* system);
/* The sessions, in the order of their steps; null if the index is out of range. */
ARENITE_API size_t arenite_system_num_sessions(const arenite_system* system);
ARENITE_API arenite_session* arenite_system_session(const arenite_system* system, size_t index);
/* The session of a model by its name; null if there is none. */
ARENITE_API arenite_session* arenite_system_find(const arenite_system* system, const char* name);
/* Ends the schedule: what was kept is needed no more, and runs that were started are given up. */
ARENITE_API arenite_status arenite_system_finish(arenite_system* system);

#ifdef __cplusplus
}
#endif

#endif
