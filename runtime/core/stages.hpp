// The stages of a program: the models of a system, one after another.
#pragma once

#include <cstddef>
#include <vector>

#include "program_generated.h"

namespace arenite {

struct Span {
  std::size_t first;
  std::size_t end;
};

// Turns, inputs and outputs of a stage.
struct StageRanges {
  Span turns;
  Span inputs;
  Span outputs;
};

// Throws ProgramError where the stages do not have the turns, inputs and outputs of the program one
// after another, read what no earlier stage makes, or are not each named once by the schedule.
// Loops are checked before.
void check_stages(const program::Program& program);

// The stages of a checked program; of a single model one that has everything, and a turn at least.
std::vector<StageRanges> stages_of(const program::Program& program);

}  // namespace arenite
