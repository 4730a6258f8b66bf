// Products with one element of a vector, as ARM64 has them.
#pragma once

#if defined(__aarch64__)
#include <arm_neon.h>

#include <cstddef>

#include "kernels/processor.hpp"

namespace arenite {

// Adds the products of two vectors of weights with one element of each row's factors to
// sum(row, vector). Two weights at a time leave registers for more sums, but only in this order,
// which volatile keeps.
template <int Element, typename Factors, std::size_t Rows, typename Sum>
ARENITE_INLINE void add_products(const float* weights, const Factors (&factors)[Rows],
                                 const Sum& sum) {
  float32x4_t pair[2];
  __asm__ volatile("ldp %q0, %q1, %2"
                   : "=w"(pair[0]), "=w"(pair[1])
                   : "Ump"(*reinterpret_cast<const float32x4_t*>(weights)));
#pragma GCC unroll 2
  for (std::size_t vector = 0; vector < 2; ++vector) {
#pragma GCC unroll 8
    for (std::size_t row = 0; row < Rows; ++row) {
      float32x4_t total = sum(row, vector).raw;
      __asm__ volatile("fmla %0.4s, %1.4s, %2.s[%3]"
                       : "+w"(total)
                       : "w"(pair[vector]), "w"(factors[row].raw), "i"(Element));
      sum(row, vector).raw = total;
    }
  }
}

}  // namespace arenite
#endif
