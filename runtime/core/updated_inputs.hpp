// The inputs that a step also writes: its states.
#pragma once

#include <cstddef>
#include <vector>

#include "program_generated.h"

namespace arenite {

// Positions of the inputs that a step also writes.
inline std::vector<std::size_t> updated_inputs(const program::Step& step) {
  if (step.kernel_type() == program::Operator::Svdf) { return {4}; }
  const auto* lstm = step.kernel_as_Lstm();
  return lstm != nullptr && lstm->keeps_state() ? std::vector<std::size_t>{4, 5}
                                                : std::vector<std::size_t>{};
}

}  // namespace arenite
