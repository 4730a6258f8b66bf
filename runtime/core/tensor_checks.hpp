// The checks of one tensor of a program.
#pragma once

#include "program_generated.h"
#include "tensor_view.hpp"

namespace arenite {

// Returns a tensor as a view without an address. Throws ProgramError where it, or one of its rows,
// does not lie inside its place on a whole element, or what is said of it cannot be.
TensorView checked_tensor(const program::Program& program, const program::Tensor& tensor);

}  // namespace arenite
