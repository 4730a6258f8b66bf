// The makers of steps, by operator.
//
// A file of a kernel set registers its makers itself: no other file names them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "step.hpp"

namespace arenite {

// In order of preference: the first maker that accepts the operands makes the step.
enum class KernelSet {
  plain_integers,  // rounded as LiteRT's reference kernels round
  integers,        // of quantised numbers whose filters are packed
  arenite,
  fallback  // for types of operands that no other set takes
};

// Adds a maker while the program starts:
//
//     const Registration registered{program::Operator::Softmax, make_softmax};
//
// An operator has one maker in each kernel set. A second one ends the process, as the linker would
// decide which of them comes first.
class Registration {
 public:
  Registration(program::Operator kind, MakeStep make, KernelSet kernels = KernelSet::arenite);
};

// Returns the step of the first maker that accepts the operands.
//
// Throws ProgramError if the operands do not fit the operator, or no kernel runs it.
std::unique_ptr<Step> make_step(const Operands& operands);

// Names of the operators that have a maker, whatever the types of their operands, in the schema's
// order.
std::vector<std::string> supported_operators();

}  // namespace arenite
