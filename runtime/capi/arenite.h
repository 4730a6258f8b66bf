/* Arenite: runs a model with every tensor at its planned offset in one arena.
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
 * The command `arenite build` makes .arena files. Memory is laid out and kernels are prepared
 * when a session is created, which refuses whatever can go wrong; a run allocates nothing.
 *
 * Threads: a model may be shared; calls on one session must not overlap. A child process that is
 * forked may use sessions of one thread alone, and destroy all. A session of a model that spills
 * tensors has a thread for that; its temporary file is in $TMPDIR or /tmp. So has one that streams
 * weights beside the computation, if the process may run on more than one processor.
 * C99; nothing throws across this border.
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

/* Counts up when this header changes in a way that programs notice. */
#define ARENITE_API_VERSION 2

/* Bytes that memory given to the library must be aligned to. */
#define ARENITE_ALIGNMENT 64

typedef enum arenite_status {
  ARENITE_OK = 0,
  ARENITE_ERROR_ARGUMENT = 1,    /* a null pointer, no such input or output, a wrong size */
  ARENITE_ERROR_FILE = 2,        /* the file cannot be opened or mapped; what spills, not written */
  ARENITE_ERROR_FORMAT = 3,      /* not an .arena file, or a damaged one */
  ARENITE_ERROR_VERSION = 4,     /* an .arena file of another version */
  ARENITE_ERROR_UNSUPPORTED = 5, /* a step needs ONNX Runtime, which only Python brings */
  ARENITE_ERROR_MEMORY = 6,      /* no memory, or what is given is too small or misaligned */
  ARENITE_ERROR_INTERNAL = 7,    /* a fault of this library */
  ARENITE_ERROR_FORKED = 8       /* a session with threads, used in a child of its process */
} arenite_status;

typedef enum arenite_type {
  ARENITE_FLOAT32 = 0,
  ARENITE_FLOAT16 = 1,
  ARENITE_INT8 = 2,
  ARENITE_UINT8 = 3,
  ARENITE_INT16 = 4,
  ARENITE_INT32 = 5,
  ARENITE_INT64 = 6,
  ARENITE_BOOLEAN = 7 /* one byte, 0 or 1 */
} arenite_type;

/* A file: a copy of its program, and its weights, mapped. Written over in place, it changes the
 * weights of sessions; cut short, it ends the process. Replace files by renaming. */
typedef struct arenite_model arenite_model;
/* A model laid out in an arena, ready to run. */
typedef struct arenite_session arenite_session;

/* An input or output under the axes it has in the model. Element (i, j, ...) lies at
 * (char *)data + i * strides[0] + j * strides[1] + ...: images are stored channels last, whatever
 * the model says, so strides need not be those of a contiguous array. A quantised number q
 * stands for (q - zero_point) * scale. The library owns it, for as long as the session lives. */
typedef struct arenite_tensor {
  const char* name;
  arenite_type type;
  size_t rank;
  const size_t* shape;      /* elements, outermost first */
  const ptrdiff_t* strides; /* bytes */
  void* data;               /* in the arena; an output that is a constant must not be written */
  size_t size;              /* bytes */
  float scale;              /* 0 if it is not quantised */
  int32_t zero_point;
} arenite_tensor;

/* Structs that the caller makes begin with their size, `sizeof` as the caller was compiled, and
 * grow at their end. A program that was compiled with an older header, whose struct is shorter, has
 * what it does not know at its default, 0. One that was compiled with a newer header may run with
 * this library: of what it knows more, all must be 0 in a struct that the library reads
 * (ARENITE_ERROR_ARGUMENT otherwise), and all comes back as 0 in one that the library fills. */

/* A stretch of memory that runs take. Most models have one, the arena. */
typedef struct arenite_memory {
  size_t struct_size; /* sizeof(arenite_memory) */
  const char* name;   /* the model's, for as long as it is open */
  size_t size;        /* bytes to supply: what the plan takes, and what kernels may read behind */
  size_t alignment;   /* bytes that its address must be a multiple of */
  int writable;       /* 0: what it holds is the caller's, and no step writes there */
  int spilled;        /* 1: tensors are carried there and back; the library's is a file */
} arenite_memory;

#define ARENITE_MEMORY_INIT {sizeof(arenite_memory), NULL, 0, 0, 0, 0}

/* Memory of the caller. */
typedef struct arenite_buffer {
  void* data;  /* null: the library takes memory */
  size_t size; /* bytes */
} arenite_buffer;

/* How a session runs. Begin with ARENITE_OPTIONS_DEFAULT. */
typedef struct arenite_options {
  size_t struct_size; /* sizeof(arenite_options) */
  unsigned threads;   /* that compute, the caller's included; 0 means 1 */
  void* arena;        /* of a model with one memory; null: the library takes it */
  size_t arena_size;  /* bytes, at least arenite_model_arena_size() */
  /* Since version 2: one for each memory of the model, in its order, in the place of `arena`. Null:
   * the library takes them all. Read during the call alone. */
  const arenite_buffer* buffers;
  size_t num_buffers;
} arenite_options;

#define ARENITE_OPTIONS_DEFAULT {sizeof(arenite_options), 1, NULL, 0, NULL, 0}

/* Bytes that a session holds while it lives. Not in it: threads and their stacks. */
typedef struct arenite_resident {
  size_t struct_size;        /* sizeof(arenite_resident) */
  uint64_t memories;         /* of the model, the library's or the caller's */
  uint64_t program;          /* a copy of the file's */
  uint64_t weights;          /* of the file: all weights */
  uint64_t weights_resident; /* of those, what runs read and do not give back */
  uint64_t decoded;          /* coded constants read without their code, and what decodes */
  uint64_t kernels;          /* packed weights and tables, and the steps themselves */
  uint64_t other;            /* what describes tensors, inputs and outputs */
} arenite_resident;

#define ARENITE_RESIDENT_INIT {sizeof(arenite_resident), 0, 0, 0, 0, 0, 0, 0}

/* Version of the library, such as "0.1.0". */
ARENITE_API const char* arenite_version(void);
/* ARENITE_API_VERSION of the library that is loaded. */
ARENITE_API unsigned arenite_api_version(void);

/* What went wrong in this thread's last call that did not return ARENITE_OK; "" before any. Valid
 * until the next such call. */
ARENITE_API const char* arenite_last_error(void);
/* Name of an element type, such as "float32"; "unknown" for another number. */
ARENITE_API const char* arenite_type_name(arenite_type type);

/* Maps a file. On failure *model is null. */
ARENITE_API arenite_status arenite_model_open(const char* path, arenite_model** model);
/* Takes a file that is in memory, aligned to ARENITE_ALIGNMENT. The bytes are not copied: they
 * stay as they are until the model and its sessions are gone. On failure *model is null. */
ARENITE_API arenite_status arenite_model_from_memory(const void* data, size_t size,
                                                     arenite_model** model);
/* Sessions keep what they need: a model may be closed before them. Null is ignored. Once closed it
 * must not be used again, nor closed: what the pointer led to is gone. */
ARENITE_API void arenite_model_close(arenite_model* model);
ARENITE_API const char* arenite_model_name(const arenite_model* model);
/* Bytes to supply for the arena: the plan's height, and what kernels may read behind it. Of a model
 * with many memories, the sum of those that are not spilled. */
ARENITE_API size_t arenite_model_arena_size(const arenite_model* model);
/* The memories of a model, 1 to 16. */
ARENITE_API size_t arenite_model_num_memories(const arenite_model* model);
/* Fills the struct, whose struct_size is set. */
ARENITE_API arenite_status arenite_model_memory(const arenite_model* model, size_t index,
                                                arenite_memory* memory);
/* Bytes of the weights in the file. */
ARENITE_API size_t arenite_model_weights_size(const arenite_model* model);

/* Lays out the memories and prepares every kernel; null options are the default. Memory of the
 * caller is used until the session is destroyed. On failure *session is null. */
ARENITE_API arenite_status arenite_session_create(const arenite_model* model,
                                                  const arenite_options* options,
                                                  arenite_session** session);
/* Null is ignored. Once destroyed it must not be used again, nor destroyed. */
ARENITE_API void arenite_session_destroy(arenite_session* session);
/* Fills the struct, whose struct_size is set. */
ARENITE_API arenite_status arenite_session_memory(const arenite_session* session,
                                                  arenite_resident* resident);

ARENITE_API size_t arenite_session_num_inputs(const arenite_session* session);
ARENITE_API size_t arenite_session_num_outputs(const arenite_session* session);
/* Null if there is none of this index. An input's bytes may be written before a run and are
 * another tensor's after it; an output's hold its result until the next run. */
ARENITE_API const arenite_tensor* arenite_session_input(const arenite_session* session,
                                                        size_t index);
ARENITE_API const arenite_tensor* arenite_session_output(const arenite_session* session,
                                                         size_t index);

/* Copies a contiguous array into an input, or an output into one, under the model's axes. `size`
 * is the array's, the tensor's `size` exactly. */
ARENITE_API arenite_status arenite_session_feed(arenite_session* session, size_t index,
                                                const void* data, size_t size);
ARENITE_API arenite_status arenite_session_fetch(const arenite_session* session, size_t index,
                                                 void* data, size_t size);

/* Runs the model once on what its inputs hold; feed all of them before each run. */
ARENITE_API arenite_status arenite_session_run(arenite_session* session);
/* Lets the tensors that are kept between runs start anew. */
ARENITE_API arenite_status arenite_session_reset(arenite_session* session);

#ifdef __cplusplus
}
#endif

#endif
