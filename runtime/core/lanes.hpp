// The lanes of a program's steps.
#pragma once

#include <cstdint>

#include "program_generated.h"

namespace arenite {

// The only lane besides lane 0, on which steps compute.
constexpr std::uint8_t kBeside = 1;

inline bool runs_beside(const program::Step& step) { return step.lane() == kBeside; }

// Whether a step may run beside others: it only moves bytes.
inline bool may_run_beside(const program::Step& step) {
  return step.kernel_type() == program::Operator::Spill ||
         step.kernel_type() == program::Operator::Fetch ||
         step.kernel_type() == program::Operator::LoadWeights;
}

}  // namespace arenite
