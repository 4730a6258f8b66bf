// What a program runs, in order: steps whole, or some of their rows.
#pragma once

#include <cstddef>

#include "program_generated.h"

namespace arenite {

// Whether the program says what runs; if not, each step runs once.
inline bool has_turns(const program::Program& program) {
  return program.turns() != nullptr && program.turns()->size() != 0;
}

inline std::size_t num_turns(const program::Program& program) {
  return has_turns(program) ? program.turns()->size() : program.steps()->size();
}

// What a turn is called where somebody is told of one.
inline const char* turn_word(const program::Program& program) {
  return has_turns(program) ? "turn" : "step";
}

inline program::Turn turn_at(const program::Program& program, std::size_t index) {
  const auto number = static_cast<flatbuffers::uoffset_t>(index);
  return has_turns(program) ? *program.turns()->Get(number) : program::Turn(number, 0, 0);
}

}  // namespace arenite
