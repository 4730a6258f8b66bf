// Steps whose operands are 16-bit floats, computed by the kernels for 32 bits.
#pragma once

#include <memory>

#include "step.hpp"

namespace arenite {

// Whether some operand is of 16-bit floats that the step does not just move or convert.
bool computes_halves(const Operands& operands);

// Returns a step that converts these operands to 32-bit floats in its working memory, a few rows
// at a time, and the results back. `make` makes the step that computes.
//
// Where all of them fit the working memory at once they are converted at once; what remains of it
// is then that of the step that computes. Each result is rounded once, and is the same to the bit
// either way.
//
// Throws ProgramError if not even one row fits, or what `make` throws.
std::unique_ptr<Step> step_of_halves(const Operands& operands, MakeStep make);

// Returns a step that computes with 16-bit floats, or null if the processor or its kernels do not
// take these operands. They are known to fit their operator.
std::unique_ptr<Step> step_in_halves(const Operands& operands);

}  // namespace arenite
