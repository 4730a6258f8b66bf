/* A plugin of QEMU's user emulation: writes how often each block of instructions ran in each phase
 * of a process, its code, where files are mapped, and the largest memory.
 *
 *   qemu-aarch64 -plugin count.so,out=FILE,mark=155 PROGRAM
 *
 * A phase ends with the system call `mark`. Debian 13's emulator loads no plugins. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../qemu_plugin.h"

int qemu_plugin_version = 1;

enum { PHASES = 4 }; /* start, load, runs, end */

typedef struct block {
  struct block* next;
  const uint8_t* code; /* in the memory of QEMU itself, whose maps name the files */
  size_t instructions;
  uint64_t runs[PHASES];
  size_t bytes;
  uint8_t copy[];
} block;

static block* blocks;
static int phase;
static int64_t mark;
static unsigned long peak, first; /* KiB that are resident: the most, and at the first mark */
static const char* path;

static void ran(unsigned processor, void* data) {
  (void)processor;
  ++((block*)data)->runs[phase];
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb* given) {
  size_t instructions = qemu_plugin_tb_n_insns(given), bytes = 0;
  block* made;
  (void)id;
  for (size_t each = 0; each < instructions; ++each) {
    bytes += qemu_plugin_insn_size(qemu_plugin_tb_get_insn(given, each));
  }
  made = calloc(1, sizeof *made + bytes);
  if (made == NULL) { abort(); }
  made->next = blocks;
  made->code = qemu_plugin_insn_haddr(qemu_plugin_tb_get_insn(given, 0));
  made->instructions = instructions;
  for (size_t each = 0; each < instructions; ++each) { /* it may cross into another page */
    struct qemu_plugin_insn* one = qemu_plugin_tb_get_insn(given, each);
    size_t size = qemu_plugin_insn_size(one);
    memcpy(made->copy + made->bytes, qemu_plugin_insn_haddr(one), size);
    made->bytes += size;
  }
  blocks = made;
  qemu_plugin_register_vcpu_tb_exec_cb(given, ran, NO_REGISTERS, made);
}

/* The guest's memory lies below a terabyte, QEMU's own above. */
static unsigned long resident(void) {
  unsigned long sum = 0, found, low, high;
  char line[4096];
  int is_guest = 0;
  FILE* maps = fopen("/proc/self/smaps", "r");
  if (maps == NULL) { abort(); }
  while (fgets(line, sizeof line, maps) != NULL) {
    if (sscanf(line, "%lx-%lx ", &low, &high) == 2) { is_guest = high >> 40 == 0; }
    if (is_guest && sscanf(line, "Rss: %lu", &found) == 1) { sum += found; }
  }
  fclose(maps);
  return sum;
}

/* Memory is largest before a call that gives some back; the numbers are those of AArch64. */
static int gives_back(int64_t number, uint64_t advice) {
  enum { BRK = 214, MUNMAP = 215, MREMAP = 216, MADVISE = 233, DONTNEED = 4 };
  return number == BRK || number == MUNMAP || number == MREMAP ||
         (number == MADVISE && advice == DONTNEED);
}

static void called(qemu_plugin_id_t id, unsigned processor, int64_t number, uint64_t a, uint64_t b,
                   uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g, uint64_t h) {
  (void)id, (void)processor, (void)a, (void)b, (void)d, (void)e, (void)f, (void)g, (void)h;
  if (number == mark || gives_back(number, c)) {
    unsigned long now = resident();
    if (now > peak) { peak = now; }
    if (number == mark && phase == 0) { first = now; }
    if (number == mark && phase < PHASES - 1) { ++phase; }
  }
}

static void ended(qemu_plugin_id_t id, void* data) {
  char line[4096];
  unsigned long now = resident();
  FILE* maps = fopen("/proc/self/maps", "r");
  FILE* out = fopen(path, "w");
  (void)id, (void)data;
  if (maps == NULL || out == NULL) { abort(); }
  while (fgets(line, sizeof line, maps) != NULL) { fprintf(out, "map %s", line); }
  for (const block* each = blocks; each != NULL; each = each->next) {
    fprintf(out, "block %llx %zu", (unsigned long long)(uintptr_t)each->code, each->instructions);
    for (int at = 0; at < PHASES; ++at) {
      fprintf(out, " %llu", (unsigned long long)each->runs[at]);
    }
    fputc(' ', out);
    for (size_t at = 0; at < each->bytes; ++at) { fprintf(out, "%02x", each->copy[at]); }
    fputc('\n', out);
  }
  fprintf(out, "resident %lu %lu\n", first, now > peak ? now : peak);
  fclose(maps);
  if (fclose(out) != 0) { abort(); }
}

int qemu_plugin_install(qemu_plugin_id_t id, const void* info, int count, char** arguments) {
  (void)info;
  if (count != 2 || strncmp(arguments[0], "out=", 4) != 0 ||
      sscanf(arguments[1], "mark=%ld", &mark) != 1) {
    return 1;
  }
  path = strdup(arguments[0] + 4);
  qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
  qemu_plugin_register_vcpu_syscall_cb(id, called);
  qemu_plugin_register_atexit_cb(id, ended, NULL);
  return 0;
}
