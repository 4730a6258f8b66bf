// Subranges: programs of the same model for the lower part of a range of sizes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "checking.hpp"
#include "program_generated.h"

namespace arenite {

// Whether nothing outlasts a run of a program, and all of it runs in turn and here: it has no
// states, stages, lanes or steps of another runtime.
bool is_plain(const program::Program& program);

inline std::size_t num_subranges(const program::Program& program) {
  return count(program.subranges());
}

// Throws ProgramError unless each can run in the place of the program, which is valid itself: in
// its memories, with its weights, inputs and outputs, from its lowest sizes up to some that are not
// the highest. What else each states is not checked (validation.hpp).
void check_subranges(const program::Program& program);

// The first subrange that has these sizes; as many as there are if only the program itself has.
std::size_t subrange_with(const program::Program& program, const std::vector<std::int64_t>& sizes);

}  // namespace arenite
