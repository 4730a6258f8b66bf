// Fills what is dead as a run goes on, so that a step which reads it shows.
#pragma once

#include <cstdint>
#include <vector>

#include "arena.hpp"
#include "program_generated.h"

namespace arenite {

// Two runs with different bytes give different outputs where a step reads what nobody wrote. One
// run is not enough: of 0xff, NaN to every floating-point type, kernels that clamp make 0.
class Poison {
 public:
  // Takes a program that was validated, with its memories, and what to fill with.
  Poison(const program::Program& program, const std::vector<Arena>& arenas, std::uint8_t byte);

  // Fills the records that begin at a turn. Inputs and states hold what they should before the
  // first.
  void before(std::size_t turn) const;
  // Fills the records that end with a turn. Outputs and states are read after the last.
  void after(std::size_t turn) const;

 private:
  // What a record takes.
  struct Stretch {
    std::size_t memory;
    std::uint64_t offset;
    std::uint64_t size;
  };

  void fill(const std::vector<Stretch>& stretches) const;

  const std::vector<Arena>& arenas_;
  std::uint8_t byte_;
  std::vector<std::vector<Stretch>> starting_;  // by the first turn of the record
  std::vector<std::vector<Stretch>> ending_;    // by the last turn of its life
};

}  // namespace arenite
