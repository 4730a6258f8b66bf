// Talks to the machine that emulates the board: files, and the end of the program.
#ifndef BOARDS_HOST_H
#define BOARDS_HOST_H

#include <stdint.h>

enum { kHostRead = 1, kHostWrite = 5 };  // "rb" and "wb"

// Returns a handle, or -1.
int host_open(const char* name, uint32_t length, int mode);

// Returns how many of the bytes were left unread or unwritten.
uint32_t host_read(int handle, void* bytes, uint32_t count);
uint32_t host_write(int handle, const void* bytes, uint32_t count);

void host_close(int handle);

// Ends the emulation with this exit code.
_Noreturn void host_exit(int code);

#endif
