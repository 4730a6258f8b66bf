// The records of a plan, walked turn by turn: which bytes of which memory are live.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <tuple>
#include <vector>

#include "program_generated.h"
#include "records.hpp"

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
  // memory, leads outside it, or lives at no turn.
  explicit LiveRecords(const program::Program& program);

  // Goes on to a turn, the next one. Throws ProgramError where two records share bytes at it.
  void enter(std::size_t turn);

  // Whether the bytes lie in records that are live: one, or several without a gap between them.
  bool hold(const Extent& extent) const { return held_until(extent) != 0; }
  // The first turn after this one at which some of them no longer do; 0 if some do not now.
  std::size_t held_until(const Extent& extent) const;
  // The same, of records that are live at every turn.
  bool hold_throughout(const Extent& extent) const;

 private:
  struct Life {
    std::uint64_t end;    // byte
    std::uint32_t until;  // turn
  };
  // By where they begin; no two share bytes.
  using Lives = std::map<std::uint64_t, Life>;

  const program::Program& program_;
  std::size_t num_turns_;
  RecordCursor next_;  // the next to live, if there is one
  bool has_next_;
  std::vector<Lives> live_;  // by memory
  // What dies, by the turn from which on it is dead: where it begins, and in which memory.
  using Death = std::tuple<std::uint32_t, std::size_t, std::uint64_t>;
  std::priority_queue<Death, std::vector<Death>, std::greater<>> dying_;
};

}  // namespace arenite
