// Programs that steps of While run in their working memory.
#pragma once

#include <cstddef>

#include "checking.hpp"
#include "program_generated.h"

namespace arenite {

// How deep programs may lie inside one another.
constexpr std::size_t kMaxInnerDepth = 8;

inline std::size_t num_inner(const program::Program& program) { return count(program.inner()); }

// Throws ProgramError unless each inner program is that of one step, and steps name such programs
// that can run in the working memory of a step: they have one memory, and nothing that outlasts a
// run. What else each states is not checked (validation.hpp), nor whether it fits its step. `depth`
// is how many programs the program lies in.
void check_inner_programs(const program::Program& program, std::size_t depth);

// The same for those inside of them too, all else that they state included.
void validate_inner_programs(const program::Program& program, std::size_t depth = 0);

}  // namespace arenite
