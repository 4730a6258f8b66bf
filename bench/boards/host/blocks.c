/* A plugin of QEMU's system emulation: writes how often each block of instructions ran, how often
 * the next one was not the one behind it, and its code.
 *
 *   qemu-system-arm -plugin blocks.so,out=FILE ...
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../qemu_plugin.h"

int qemu_plugin_version = 1;

typedef struct block {
  struct block* next;
  uint64_t place;
  size_t instructions;
  uint64_t runs, jumps;
  size_t bytes;
  uint8_t code[];
} block;

static block* blocks;
static block* last;
static const char* path;

static void ran(unsigned processor, void* data) {
  block* now = data;
  (void)processor;
  if (last != NULL && last->place + last->bytes != now->place) { ++last->jumps; }
  ++now->runs;
  last = now;
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb* given) {
  const size_t instructions = qemu_plugin_tb_n_insns(given);
  size_t bytes = 0;
  block* made;
  (void)id;
  for (size_t each = 0; each < instructions; ++each) {
    bytes += qemu_plugin_insn_size(qemu_plugin_tb_get_insn(given, each));
  }
  made = calloc(1, sizeof *made + bytes);
  if (made == NULL) { abort(); }
  made->next = blocks;
  made->place = qemu_plugin_tb_vaddr(given);
  made->instructions = instructions;
  for (size_t each = 0; each < instructions; ++each) {
    struct qemu_plugin_insn* one = qemu_plugin_tb_get_insn(given, each);
    const size_t size = qemu_plugin_insn_size(one);
    memcpy(made->code + made->bytes, qemu_plugin_insn_data(one), size);
    made->bytes += size;
  }
  blocks = made;
  qemu_plugin_register_vcpu_tb_exec_cb(given, ran, NO_REGISTERS, made);
}

static void ended(qemu_plugin_id_t id, void* data) {
  FILE* out = fopen(path, "w");
  (void)id, (void)data;
  if (out == NULL) { abort(); }
  for (const block* each = blocks; each != NULL; each = each->next) {
    if (each->runs == 0) { continue; }
    fprintf(out, "%" PRIx64 " %zu %" PRIu64 " %" PRIu64 " ", each->place, each->instructions,
            each->runs, each->jumps);
    for (size_t at = 0; at < each->bytes; ++at) { fprintf(out, "%02x", each->code[at]); }
    fputc('\n', out);
  }
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
