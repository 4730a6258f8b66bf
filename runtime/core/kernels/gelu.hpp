// The Gaussian error linear unit, x times the share of a normal distribution that is below x.
#pragma once

#include <cstddef>

#include "kernels/approximations.hpp"
#include "kernels/processor.hpp"

namespace arenite {

struct Gelu {
  float operator()(float x) const {
    constexpr float kRootHalf = 0.70710678118654752f;
    const float half = 0.5f * x;
    return half + half * error_function_of_number(x * kRootHalf);
  }

#ifdef ARENITE_ARM64
  // Of blocks of kMapBlock elements: compilers would take as many instructions again.
  static void map_blocks(const float* source, float* target, std::size_t blocks);
#endif
};

}  // namespace arenite
