// What a program says, checked before anything of it is used.
#pragma once

#include <vector>

#include "program_generated.h"
#include "tensor_view.hpp"

namespace arenite {

// Returns the program's tensors as views without addresses, all inside their place.
//
// Throws ProgramError where a number leads outside, an operand is of no tensor, a step writes a
// constant or a memory that is not writable, or updates what is not a state, a tensor is used
// outside every record of its memory that is live, or two records share bytes at a step.
//
// Cost: O((tensors + records + operands) log records).
std::vector<TensorView> validated_tensors(const program::Program& program);

// Bytes of an element.
std::size_t element_size(program::Type type);

}  // namespace arenite
