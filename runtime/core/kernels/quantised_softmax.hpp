// Softmax of quantised numbers, or its logarithm.
#pragma once

#include <cmath>
#include <cstddef>

#include "kernels/approximations.hpp"
#include "kernels/quantised.hpp"
#include "kernels/sums.hpp"

namespace arenite {

template <typename T>
ARENITE_INLINE T largest(const T* source, std::size_t count) {
  return fold(
      count, source[0], [=](std::size_t i) { return source[i]; },
      [](T a, T b) { return a > b ? a : b; });
}

// Writes the softmax of beta times `count` numbers, at least one. The target may be the source.
template <typename T>
ARENITE_INLINE void softmax_of_quantised(const Scale& in, const Scale& out, float beta, bool is_log,
                                         const T* source, T* target, std::size_t count) {
  const float top = in.dequantise(largest(source, count));
  const auto power = [=](std::size_t i) {
    return exponential_below(beta * (in.dequantise(source[i]) - top));
  };
  const float sum = sum_of(count, power);
  const float logarithm = std::log(sum);
  for (std::size_t i = 0; i < count; ++i) {
    target[i] = out.quantise<T>(is_log ? beta * (in.dequantise(source[i]) - top) - logarithm
                                       : power(i) / sum);
  }
}

}  // namespace arenite
