/* A plugin of QEMU: writes how often each block of instructions ran, and where files are mapped.
 *
 *   qemu-aarch64 -plugin count.so,out=FILE PROGRAM
 *
 * The declarations are those of QEMU's plugin interface, version 1, of which no package has the
 * header. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum { ADD_U64 };

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
                                           void (*call)(qemu_plugin_id_t, struct qemu_plugin_tb*));
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb* block, int operation,
                                              void* counter, uint64_t number);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, void (*call)(qemu_plugin_id_t, void*),
                                    void* data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb* block);
struct qemu_plugin_insn* qemu_plugin_tb_get_insn(const struct qemu_plugin_tb* block, size_t index);
void* qemu_plugin_insn_haddr(const struct qemu_plugin_insn* instruction);

int qemu_plugin_version = 1;

typedef struct block {
  struct block* next;
  uint64_t address; /* in the memory of QEMU itself, whose maps name the files */
  uint64_t instructions;
  uint64_t runs;
} block;

static block* blocks;
static const char* path;

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb* given) {
  block* made = calloc(1, sizeof *made);
  (void)id;
  if (made == NULL) { abort(); }
  made->next = blocks;
  made->address = (uint64_t)(uintptr_t)qemu_plugin_insn_haddr(qemu_plugin_tb_get_insn(given, 0));
  made->instructions = qemu_plugin_tb_n_insns(given);
  blocks = made;
  qemu_plugin_register_vcpu_tb_exec_inline(given, ADD_U64, &made->runs, 1);
}

static void ended(qemu_plugin_id_t id, void* data) {
  char line[4096];
  FILE* maps = fopen("/proc/self/maps", "r");
  FILE* out = fopen(path, "w");
  (void)id;
  (void)data;
  if (maps == NULL || out == NULL) { abort(); }
  while (fgets(line, sizeof line, maps) != NULL) { fprintf(out, "map %s", line); }
  for (const block* each = blocks; each != NULL; each = each->next) {
    if (each->runs != 0) {
      fprintf(out, "block %llx %llu %llu\n", (unsigned long long)each->address,
              (unsigned long long)each->instructions, (unsigned long long)each->runs);
    }
  }
  fclose(maps);
  if (fclose(out) != 0) { abort(); }
}

int qemu_plugin_install(qemu_plugin_id_t id, const void* info, int count, char** arguments) {
  (void)info;
  if (count != 1 || strncmp(arguments[0], "out=", 4) != 0) { return 1; }
  path = strdup(arguments[0] + 4);
  qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
  qemu_plugin_register_atexit_cb(id, ended, NULL);
  return 0;
}
