// Reads the bytes of the inputs from the serial line and writes a line for each output.
#include <modelname.h>
#include <modelname_serial.h>

static uint8_t receive_byte() {
  while (Serial.available() == 0) yield();
  return (uint8_t)Serial.read();
}

static void send_byte(char byte) { Serial.write((uint8_t)byte); }

void setup() {
  Serial.begin(115200);
  modelname_begin();
}

void loop() { modelname_serve(receive_byte, send_byte); }
