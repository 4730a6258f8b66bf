// The vector instructions of the processor, for kernels that are compiled for several.
//
// The environment variable ARENITE_VECTORS=avx512, =avx2 or =any limits kernels to these: for
// tests, and to measure the speed of smaller processors.
#pragma once

#include <cstdlib>
#include <string_view>

#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace arenite {

enum class Vectors { any, avx2, avx512 };

#define ARENITE_INLINE __attribute__((always_inline)) inline

#if defined(__x86_64__) && defined(__GNUC__)
#define ARENITE_X86
// flatten: its callees are compiled into it, or they would be compiled for any processor.
#define ARENITE_FOR_AVX2 __attribute__((flatten, target("avx2,fma")))
#define ARENITE_FOR_AVX512 \
  __attribute__((flatten, target("avx512f,avx512dq,avx512bw,avx512vl,fma")))

// AVX-512 with dot products of four bytes (VNNI).
#define ARENITE_FOR_VNNI \
  __attribute__((flatten, target("avx512f,avx512dq,avx512bw,avx512vl,avx512vnni,avx2,fma")))

inline Vectors vectors() {
  static const Vectors found = [] {
    __builtin_cpu_init();
    const char* given = std::getenv("ARENITE_VECTORS");
    const std::string_view most = given == nullptr ? "" : given;
    if (most == "any") { return Vectors::any; }
    if (most != "avx2" && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
      return Vectors::avx512;
    }
    const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                          __builtin_cpu_supports("f16c");
    return has_avx2 ? Vectors::avx2 : Vectors::any;
  }();
  return found;
}

// Whether the processor has dot products of four bytes.
inline bool has_dot_products() {
  static const bool found = std::getenv("ARENITE_VECTORS") == nullptr &&
                            vectors() == Vectors::avx512 &&
                            static_cast<bool>(__builtin_cpu_supports("avx512vnni"));
  return found;
}
#else
#define ARENITE_FOR_AVX2
#define ARENITE_FOR_AVX512

inline Vectors vectors() { return Vectors::any; }

#if defined(__aarch64__) && defined(__linux__)
#define ARENITE_ARM64
inline bool has_dot_products() {
  static const bool found =
      std::getenv("ARENITE_VECTORS") == nullptr && (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
  return found;
}

// Whether the processor computes with vectors of 16-bit floats.
inline bool has_half_arithmetic() {
  static const bool found =
      std::getenv("ARENITE_VECTORS") == nullptr && (getauxval(AT_HWCAP) & HWCAP_ASIMDHP) != 0;
  return found;
}
#else
inline bool has_dot_products() { return false; }
#endif
#endif

// Where it is what processors run, functions are compiled into it, too.
#ifdef ARENITE_ARM64
#define ARENITE_FOR_ANY __attribute__((flatten))
#else
#define ARENITE_FOR_ANY
#endif

template <typename Work>
ARENITE_FOR_ANY void run_for_any(const Work& work) {
  const Work copy = work;
  copy();
}

#if defined(ARENITE_X86)
template <typename Work>
ARENITE_FOR_AVX2 void run_for_avx2(const Work& work) {
  const Work copy = work;
  copy();
}

template <typename Work>
ARENITE_FOR_AVX512 void run_for_avx512(const Work& work) {
  const Work copy = work;
  copy();
}
#endif

// Calls work(), compiled for each kind of vectors, with the widest ones of the processor. The work
// is a copy: through a pointer to it, every element written could change it.
template <typename Work>
void with_widest_vectors(const Work& work) {
#if defined(ARENITE_X86)
  switch (vectors()) {
    case Vectors::avx512: return run_for_avx512(work);
    case Vectors::avx2: return run_for_avx2(work);
    default: break;
  }
#endif
  run_for_any(work);
}

}  // namespace arenite
