#include <stdlib.h>

#include "Arduino.h"

SerialLine Serial;

void yield() { exit(0); }  // a sketch waits where its input ends

int main() {
  setup();
  for (;;) loop();
}
