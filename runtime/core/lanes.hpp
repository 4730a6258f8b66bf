// Which steps of a program run on which lane, and what waits for them.
#pragma once

#include <cstdint>

#include "program_generated.h"

namespace arenite {

// The lane of steps that run beside those that compute, which are on lane 0. There is one.
constexpr std::uint8_t kBeside = 1;

inline bool runs_beside(const program::Step& step) { return step.lane() == kBeside; }

// Whether a step may run beside others: it moves bytes, and computes with none.
inline bool may_run_beside(const program::Step& step) {
  return step.kernel_type() == program::Operator::Spill ||
         step.kernel_type() == program::Operator::Fetch ||
         step.kernel_type() == program::Operator::LoadWeights;
}

}  // namespace arenite
