// The intrinsics of x86-64, where there are any, and what keeps compilers from undoing them.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#include <cstddef>

#if !defined(__clang__)
// The intrinsics of GCC 12 read what they then do not use.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

namespace arenite {

// Hides a number from the compiler, which would compute more of them than there are registers.
inline std::size_t opaque(std::size_t number) {
  asm("" : "+r"(number));
  return number;
}

}  // namespace arenite

#endif
