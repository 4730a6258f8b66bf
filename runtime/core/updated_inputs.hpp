// The inputs that a step also writes: its states.
#pragma once

#include <cstddef>

#include "program_generated.h"
#include "step_memory.hpp"

namespace arenite {

// Positions of the inputs that a step also writes.
inline StepVector<std::size_t> updated_inputs(const program::Step& step) {
  if (step.kernel_type() == program::Operator::Svdf) { return {4}; }
  const auto* lstm = step.kernel_as_Lstm();
  return lstm != nullptr && lstm->keeps_state() ? StepVector<std::size_t>{4, 5}
                                                : StepVector<std::size_t>{};
}

}  // namespace arenite
