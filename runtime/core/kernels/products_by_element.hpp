// Products with one element of a vector, as ARM64 has them.
#pragma once

#if defined(__aarch64__)
#include <arm_neon.h>

#include <cstddef>

#include "kernels/processor.hpp"

namespace arenite {

// Two vectors of weights at a time leave registers for more sums, but only in the order that is
// written, which volatile keeps.
struct WeightPair {
  float32x4_t of[2];
  ARENITE_INLINE void load(const float* weights) {
    float32x4_t first, second;
    __asm__ volatile("ldp %q0, %q1, %2"
                     : "=w"(first), "=w"(second)
                     : "Ump"(*reinterpret_cast<const float32x4_t*>(weights)));
    of[0] = first;
    of[1] = second;
  }
};

// Adds the products of two vectors of weights with one element of each row's factors to
// sum(row, vector).
template <int Element, typename Factors, std::size_t Rows, typename Sum>
ARENITE_INLINE void add_products(const WeightPair& pair, const Factors (&factors)[Rows],
                                 const Sum& sum) {
#pragma GCC unroll 2
  for (std::size_t vector = 0; vector < 2; ++vector) {
#pragma GCC unroll 8
    for (std::size_t row = 0; row < Rows; ++row) {
      float32x4_t total = sum(row, vector).raw;
      __asm__ volatile("fmla %0.4s, %1.4s, %2.s[%3]"
                       : "+w"(total)
                       : "w"(pair.of[vector]), "w"(factors[row].raw), "i"(Element));
      sum(row, vector).raw = total;
    }
  }
}

template <int Element, typename Factors, std::size_t Rows, typename Sum>
ARENITE_INLINE void add_products(const float* weights, const Factors (&factors)[Rows],
                                 const Sum& sum) {
  WeightPair pair;
  pair.load(weights);
  add_products<Element>(pair, factors, sum);
}

}  // namespace arenite
#endif
