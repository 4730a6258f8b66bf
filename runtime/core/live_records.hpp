// The records of a plan, walked step by step: which bytes of which memory are live.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "program_generated.h"

namespace arenite {

// Bytes [begin, end) of a memory.
struct Extent {
  std::size_t memory;
  std::uint64_t begin;
  std::uint64_t end;
};

class LiveRecords {
 public:
  // Takes a program whose memories are checked. Throws ProgramError where a record names no
  // memory, leads outside it, or lives at no step.
  explicit LiveRecords(const program::Program& program);

  // Goes on to a step, the next one. Throws ProgramError where two records share bytes at it.
  void enter(std::size_t step);

  // Whether the bytes lie in one record that is live.
  bool hold(const Extent& extent) const;
  // The same, of a record that is live at every step.
  bool hold_throughout(const Extent& extent) const;

 private:
  using Index = flatbuffers::uoffset_t;
  // By where they begin; no two share bytes.
  using Ends = std::map<std::uint64_t, std::uint64_t>;

  static bool holds(const Ends& ends, const Extent& extent);

  const program::Program& program_;
  std::vector<std::vector<Index>> starting_;  // by step
  std::vector<std::vector<Index>> ending_;
  std::vector<Ends> live_;  // by memory
  std::vector<Ends> permanent_;
};

}  // namespace arenite
