// The turns of a program, in order: whole steps, or some of their rows, in loops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "program_generated.h"

namespace arenite {

// One turn.
class RunTurn {
 public:
  RunTurn(std::uint32_t step, std::uint32_t first, std::uint32_t count)
      : step_(step), first_(first), count_(count) {}

  std::uint32_t step() const { return step_; }
  std::uint32_t first() const { return first_; }
  std::uint32_t count() const { return count_; }

 private:
  std::uint32_t step_;
  std::uint32_t first_;
  std::uint32_t count_;
};

// Throws ProgramError where loops do not have the turns that there are, lead to rows that no number
// counts, or run more turns than any program has. Nothing below may be asked before.
void check_loops(const program::Program& program);

// Whether the program lists turns; if not, each step runs once.
inline bool has_turns(const program::Program& program) {
  return program.loops() != nullptr && program.loops()->size() != 0;
}

std::size_t num_turns(const program::Program& program);

// The word for a turn in messages.
inline const char* turn_word(const program::Program& program) {
  return has_turns(program) ? "turn" : "step";
}

// Iterates over turns without unrolling the loops.
class TurnCursor {
 public:
  // At a turn, or behind the last. `rounds` states for each loop how many rounds have rows, at
  // least 1: the others are left out.
  explicit TurnCursor(const program::Program& program, std::size_t index = 0,
                      const std::vector<std::uint32_t>* rounds = nullptr);

  bool is_at_end() const { return index_ == end_; }
  std::size_t index() const { return index_; }
  RunTurn operator*() const;
  void next();

 private:
  const program::Program& program_;
  const std::vector<std::uint32_t>* rounds_;
  std::size_t index_;
  std::size_t end_;
  flatbuffers::uoffset_t loop_ = 0;
  flatbuffers::uoffset_t begin_ = 0;  // the first turn of the loop
  flatbuffers::uoffset_t place_ = 0;  // in the loop
  std::uint32_t round_ = 0;           // how often it came round
};

}  // namespace arenite
