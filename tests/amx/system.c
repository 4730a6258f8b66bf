// As much of an operating system as a program needs that is linked with all of its libraries, does
// not start threads, and writes to a terminal.
#include <elf.h>
#include <stddef.h>
#include <stdint.h>

// Where the program's file lies, and what is free.
#define PROGRAM 0xffe00000ul
#define STACK_END 0x10000000ul
#define HEAP 0x20000000ul
#define HEAP_END 0x3f000000ul

enum { EBADF = 9, ENOMEM = 12, EINVAL = 22, ENOTTY = 25, ENOSYS = 38 };
enum {
  CALL_WRITE = 1,
  CALL_FSTAT = 5,
  CALL_MMAP = 9,
  CALL_MPROTECT = 10,
  CALL_MUNMAP = 11,
  CALL_BRK = 12,
  CALL_IOCTL = 16,
  CALL_WRITEV = 20,
  CALL_ARCH_PRCTL = 158,
  CALL_FUTEX = 202,
  CALL_SET_TID_ADDRESS = 218,
  CALL_EXIT_GROUP = 231,
  CALL_NEWFSTATAT = 262,
};

static uintptr_t heap = HEAP;
static uintptr_t program_end;

static void put(char byte, uint16_t port) {
  __asm__ volatile("outb %0, %1" ::"a"(byte), "d"(port));
}

static void write(const char* text, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    put(text[i], 0xe9);  // the emulator prints it
  }
}

static void stop(int status) {
  const char* text = status == 0 ? "exit 0\n" : "exit 1\n";
  write(text, 7);
  for (const char* word = "Shutdown"; *word != 0; ++word) {
    put(*word, 0x8900);  // ends the emulator
  }
  for (;;) {
    __asm__ volatile("hlt");
  }
}

static void clear(uintptr_t from, size_t size) {
  __asm__ volatile("rep stosb" : "+D"(from), "+c"(size) : "a"(0) : "memory");
}

static long arch_prctl(long code, unsigned long value) {
  enum { SET_FS = 0x1002, ASK_FOR_STATE = 0x1023, TILES = 18 };
  if (code == SET_FS) {
    __asm__ volatile("wrmsr" ::"c"(0xc0000100), "a"((uint32_t)value), "d"(value >> 32));
    return 0;
  }
  return code == ASK_FOR_STATE && value == TILES ? 0 : -EINVAL;
}

long answer(long number, unsigned long a, unsigned long b, unsigned long c) {
  switch (number) {
    case CALL_WRITE:
      write((const char*)b, c);
      return (long)c;
    case CALL_WRITEV: {
      long total = 0;
      const struct {
        const char* text;
        size_t size;
      }* parts = (const void*)b;
      for (unsigned long i = 0; i < c; ++i) {
        write(parts[i].text, parts[i].size);
        total += (long)parts[i].size;
      }
      return total;
    }
    case CALL_MMAP: {
      const uintptr_t found = heap;
      const size_t size = (b + 4095) / 4096 * 4096;
      if (a != 0 || size > HEAP_END - found) {
        return -ENOMEM;
      }
      heap += size;
      clear(found, size);
      return (long)found;
    }
    case CALL_BRK:
      if (a > program_end && a < STACK_END - (64ul << 20)) {
        program_end = a;
      }
      return (long)program_end;
    case CALL_ARCH_PRCTL:
      return arch_prctl((long)a, b);
    case CALL_MUNMAP:  // nothing is given back
    case CALL_MPROTECT:
    case CALL_FUTEX:
      return 0;
    case CALL_SET_TID_ADDRESS:
      return 1;
    case CALL_FSTAT:
    case CALL_NEWFSTATAT:
      return -EBADF;
    case CALL_IOCTL:
      return -ENOTTY;
    case CALL_EXIT_GROUP:
      stop((int)a);
      return 0;
    default:
      return -ENOSYS;
  }
}

void begin(void) {
  const Elf64_Ehdr* file = (const void*)PROGRAM;
  const Elf64_Phdr* parts = (const void*)(PROGRAM + file->e_phoff);
  for (int i = 0; i < file->e_phnum; ++i) {
    if (parts[i].p_type == PT_LOAD) {
      uintptr_t to = parts[i].p_vaddr;
      uintptr_t from = PROGRAM + parts[i].p_offset;
      size_t size = parts[i].p_filesz;
      const uintptr_t end = to + parts[i].p_memsz;
      __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size)::"memory");
      clear(to, end - to);
      program_end = (end + 4095) / 4096 * 4096;
    }
  }
  static const uint64_t random[2] = {0x1234567, 0x89abcdef};
  const uint64_t words[] = {
      4,
      (uint64_t)"int8_kernels",
      (uint64_t)COUNT,
      (uint64_t)SEED,
      (uint64_t)LEAST_WEIGHT,
      0,
      0,
      AT_PHDR,
      PROGRAM + file->e_phoff,
      AT_PHNUM,
      file->e_phnum,
      AT_PHENT,
      sizeof *parts,
      AT_PAGESZ,
      4096,
      AT_RANDOM,
      (uint64_t)random,
      AT_NULL,
      0,
  };
  uint64_t* stack = (uint64_t*)(STACK_END - 4096);
  for (size_t i = 0; i < sizeof words / sizeof *words; ++i) {
    stack[i] = words[i];
  }
  __asm__ volatile("mov %0, %%rsp; jmp *%1" ::"r"(stack), "r"(file->e_entry), "d"(0));
  __builtin_unreachable();
}
