// Checks that FlatBuffers' verifier leaves out: names and the alignment of numbers.
#pragma once

#include "program_generated.h"

namespace arenite {

// Throws ProgramError where a name is not UTF-8, or the numbers of a list are not aligned.
void check_text_and_alignment(const program::Program& program);

}  // namespace arenite
