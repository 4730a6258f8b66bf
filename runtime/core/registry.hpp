// For each operator, what makes its step.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "step.hpp"

namespace arenite {

// Returns the step, from the first maker that takes the operands.
//
// Throws ProgramError where the operands do not fit the operator, or nothing runs it.
std::unique_ptr<Step> make_step(const Operands& operands);

// Names of the operators that something runs.
std::vector<std::string> supported_operators();

}  // namespace arenite
