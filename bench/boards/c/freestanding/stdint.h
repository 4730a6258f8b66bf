// The compiler's own, which its <stdint.h> leaves to a library.
#include <stdint-gcc.h>
