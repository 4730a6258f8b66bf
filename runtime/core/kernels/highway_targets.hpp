// The targets that Highway compiles for, as vectors() distinguishes them. Include it first.
#pragma once

#include "kernels/processor.hpp"

// Unused, and not checked by vectors().
#define HWY_DISABLE_PCLMUL_AES

// The lowest bits are extensions of AVX-512. Vectors whose length is unknown at compile time cannot
// be kept in arrays.
#define HWY_DISABLED_TARGETS \
  (0xFF | HWY_SSE4 | HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#if !defined(__x86_64__)
#define HWY_COMPILE_ONLY_STATIC
#endif
