// Copies between arrays of the caller, axes as the caller has them, and inputs and outputs in the
// arena.
#pragma once

#include <vector>

#include "kernels/strided_copy.hpp"
#include "program_generated.h"
#include "tensor_view.hpp"

namespace arenite {

// Of the tensors of a program: copies into its inputs.
std::vector<StridedCopy> feeds_of(const program::Program& program,
                                  const std::vector<TensorView>& tensors);

// Copies out of its outputs.
std::vector<StridedCopy> fetches_of(const program::Program& program,
                                    const std::vector<TensorView>& tensors);

}  // namespace arenite
