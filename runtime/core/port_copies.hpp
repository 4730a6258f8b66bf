// Copies between arrays of the caller, axes as the caller has them, and inputs and outputs in the
// arena.
#pragma once

#include <vector>

#include "kernels/strided_copy.hpp"
#include "program_generated.h"
#include "tensor_view.hpp"

namespace arenite {

// Of the tensors of a program: copies into its inputs, in the place of those that there were.
void make_feeds(const program::Program& program, const std::vector<TensorView>& tensors,
                std::vector<StridedCopy>& feeds);

// Copies out of its outputs.
void make_fetches(const program::Program& program, const std::vector<TensorView>& tensors,
                  std::vector<StridedCopy>& fetches);

}  // namespace arenite
