// Runs the model on each input of a file, writes its outputs to another, and reports how much stack
// it took, how many ticks, and whether anything round the arena was touched.
#include <stddef.h>
#include <stdint.h>

#include "counter.h"
#include "host.h"
#include "subject.h"  // written for the model: its functions and sizes by common names

enum { kCanary = 32, kGuard = 32 };
enum { kEndOfInputs = 0, kNoFile = 2, kCutInput = 3, kRunFailed = 4, kNoCounter = 5 };

extern uint32_t __stack_limit[];

// Nothing of the project's fills memory with these.
static const uint8_t kPatterns[] = {0xA7, 0x59};

__attribute__((section(".arena"))) static struct {
  _Alignas(SUBJECT_ARENA_ALIGN) uint8_t
      before[(kCanary + SUBJECT_ARENA_ALIGN - 1) / SUBJECT_ARENA_ALIGN * SUBJECT_ARENA_ALIGN];
  uint8_t arena[SUBJECT_ARENA_BYTES];
  uint8_t after[kCanary];
} memory;

typedef struct {
  uint32_t runs, stack, stack_room, overflowed, canaries, calibration;
  uint64_t ticks;
} Report;

static uint8_t canary(const uint8_t* at) { return (uint8_t)(0x5B ^ (uintptr_t)at); }

static void set_canaries(uint8_t* bytes, size_t count) {
  for (size_t i = 0; i < count; ++i) bytes[i] = canary(bytes + i);
}

static uint32_t harmed(const uint8_t* bytes, size_t count) {
  uint32_t number = 0;
  for (size_t i = 0; i < count; ++i) number += bytes[i] != canary(bytes + i);
  return number;
}

static inline __attribute__((always_inline)) uint8_t* stack_pointer(void) {
  uint8_t* pointer;
#if defined(__riscv)
  __asm__ volatile("mv %0, sp" : "=r"(pointer));
#else
  __asm__ volatile("mov %0, sp" : "=r"(pointer));
#endif
  return pointer;
}

// Paints the stack below this function's frame, runs the model, and looks how deep it went. Nothing
// is pushed between the painting and the call.
static __attribute__((noinline)) int run_measured(uint8_t pattern, Report* report) {
  volatile uint8_t* const limit = (volatile uint8_t*)__stack_limit;
  volatile uint8_t* const pointer = stack_pointer();
  for (volatile uint8_t* at = limit; at < pointer; ++at) *at = pattern;
  counter_start();
  const int status = SUBJECT_RUN(memory.arena);
  counter_poll();
  volatile uint8_t* at = limit;
  while (at < pointer && *at == pattern) ++at;
  // What is pushed is words, and the lowest byte of one may be the pattern.
  const uint32_t depth = ((uint32_t)(pointer - at) + 3) & ~(uint32_t)3;
  if (depth > report->stack) report->stack = depth;
  report->stack_room = (uint32_t)(pointer - limit);
  if (at < limit + kGuard) report->overflowed = 1;
  report->ticks = counted_ticks;
  return status;
}

// Counts the ticks of a million turns of two instructions.
static __attribute__((noinline)) uint32_t calibrate(void) {
  uint32_t turns = 1000000;
  counter_start();
#if defined(__riscv)
  __asm__ volatile(".balign 4\n1: addi %0, %0, -1\nbnez %0, 1b" : "+r"(turns));
#elif defined(__XTENSA__)
  __asm__ volatile("1: addi %0, %0, -1\nbnez %0, 1b" : "+r"(turns));
#else
  __asm__ volatile(".syntax unified\n.balign 4\n1: subs %0, %0, #1\nbne 1b" : "+l"(turns) : : "cc");
#endif
  counter_poll();
  return (uint32_t)counted_ticks;
}

// In hexadecimal: a division would take code of the library that the model may not need.
static void say(int file, const char* key, uint32_t length, uint64_t value) {
  char digits[18];
  digits[0] = ' ';
  for (int i = 0; i < 16; ++i) digits[1 + i] = "0123456789abcdef"[(value >> (60 - 4 * i)) & 15];
  digits[17] = '\n';
  host_write(file, key, length);
  host_write(file, digits, sizeof digits);
}

#define SAY(file, name, value) say(file, name, sizeof(name) - 1, value)

static int report_to_host(const Report* report) {
  const int file = host_open("report", 6, kHostWrite);
  if (file < 0) return kNoFile;
  SAY(file, "runs", report->runs);
  SAY(file, "stack", report->stack);
  SAY(file, "stack_room", report->stack_room);
  SAY(file, "stack_overflowed", report->overflowed);
  SAY(file, "canaries_harmed", report->canaries);
  SAY(file, "ticks", report->ticks);
  SAY(file, "calibration_ticks", report->calibration);
  host_close(file);
  return 0;
}

// Reads the inputs of one run into the arena; 1 where the file has ended, 0 where all were read.
static int read_inputs(int file) {
  for (uint32_t i = 0; i < SUBJECT_INPUTS; ++i) {
    const uint32_t size = subject_input_bytes(i);
    const uint32_t left = host_read(file, subject_input(memory.arena, i), size);
    if (left == size && i == 0) return 1;
    if (left != 0) host_exit(kCutInput);
  }
  return 0;
}

int main(void) {
  static Report report;
  const int inputs = host_open("inputs", 6, kHostRead);
  const int outputs = host_open("outputs", 7, kHostWrite);
  if (inputs < 0 || outputs < 0) return kNoFile;
  report.calibration = calibrate();
  if (report.calibration == 0) return kNoCounter;
  set_canaries(memory.before, sizeof memory.before);
  set_canaries(memory.after, sizeof memory.after);
  for (size_t i = 0; i < sizeof memory.arena; ++i) memory.arena[i] = (uint8_t)(0xC3 + i);
  SUBJECT_BEGIN(memory.arena);
  while (!read_inputs(inputs)) {
    if (run_measured(kPatterns[report.runs % 2], &report) != 0) return kRunFailed;
    for (uint32_t i = 0; i < SUBJECT_OUTPUTS; ++i) {
      const void* output = subject_output(memory.arena, i);
      if (host_write(outputs, output, subject_output_bytes(i)) != 0) return kNoFile;
    }
    ++report.runs;
  }
  report.canaries = harmed(memory.before, sizeof memory.before);
  report.canaries += harmed(memory.after, sizeof memory.after);
  return report_to_host(&report);
}
