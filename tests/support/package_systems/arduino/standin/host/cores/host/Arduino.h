// What a sketch uses of Arduino's core; the serial line is standard input and output.
#pragma once
#include <stdint.h>
#include <stdio.h>

void setup();
void loop();
void yield();

struct SerialLine {
  void begin(long) {}
  int available() {
    const int byte = getchar();
    if (byte == EOF) return 0;
    ungetc(byte, stdin);
    return 1;
  }
  int read() { return getchar(); }
  void write(uint8_t byte) { putchar(byte); }
};
extern SerialLine Serial;
