// A pool of threads where there are none: each kernel is called without one.
#include <stddef.h>
#include <stdlib.h>

typedef void (*task)(void*, size_t, size_t);

void* pthreadpool_create(size_t count) {
  (void)count;
  return NULL;
}

void pthreadpool_destroy(void* pool) { (void)pool; }

void pthreadpool_parallelize_1d_tile_1d(void* pool, task function, void* context, size_t range,
                                        size_t tile, unsigned flags) {
  (void)pool, (void)function, (void)context, (void)range, (void)tile, (void)flags;
  abort();
}
