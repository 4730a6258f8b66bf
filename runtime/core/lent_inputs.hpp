// Inputs that a run may read in the caller's arrays.
#pragma once

#include <memory>
#include <vector>

#include "program_generated.h"
#include "step.hpp"
#include "tensor_view.hpp"

namespace arenite {

// Fills in, by input of the program, where its only reader finds it; null for an input that has to
// be copied into the arena, as others read it or its axes are permuted. `written` is room for a
// list.
void find_lendable_inputs(const program::Program& program, const std::vector<TensorView>& tensors,
                          const std::vector<std::unique_ptr<Step>>& steps,
                          std::vector<const TensorView*>& written,
                          std::vector<const std::byte**>& places);

}  // namespace arenite
