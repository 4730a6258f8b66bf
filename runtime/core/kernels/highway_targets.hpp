// Which processors Highway compiles for: those that vectors() tells apart. Include it first.
#pragma once

#include "kernels/processor.hpp"

// Their instructions are never used, and vectors() does not ask for them.
#define HWY_DISABLE_PCLMUL_AES
#define HWY_DISABLE_F16C

// The lowest bits are x86's beyond AVX-512 as it began. Vectors whose length the compiler does not
// know cannot be kept in arrays.
#define HWY_DISABLED_TARGETS \
  (0xFF | HWY_SSE4 | HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#if !defined(__x86_64__)
#define HWY_COMPILE_ONLY_STATIC
#endif
