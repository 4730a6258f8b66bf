// The intrinsics of x86-64, and helpers against unwanted optimisations.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#include <cstddef>

#if !defined(__clang__)
// The intrinsics of GCC 12 read uninitialised values without using them.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

namespace arenite {

// Hides a number or an address from the compiler, which would otherwise derive more of them than
// there are registers.
template <typename T>
T opaque(T value) {
  asm("" : "+r"(value));
  return value;
}

}  // namespace arenite

#endif
