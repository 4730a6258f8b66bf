// The live bytes of each memory, turn by turn.
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

// Bytes of a memory that are live at every turn that touches a tensor, those of it that are
// touched among them.
struct Room {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
};

class LiveRecords {
 public:
  // Takes a program whose memories are checked. Throws ProgramError where a record names no
  // memory, leads outside it, or lives at no turn.
  explicit LiveRecords(const program::Program& program);

  // Advances to the next turn. Throws ProgramError if two records share bytes at it.
  void enter(std::size_t turn);

  // Whether all of the bytes lie in live records.
  bool hold(const Extent& extent) const { return held_until(extent) != 0; }
  // The first turn at which some of them no longer do; 0 if some do not now.
  std::size_t held_until(const Extent& extent) const;
  // The live bytes around some that are.
  Room room_around(const Extent& extent) const;
  // Whether all of the bytes lie in records that are live at every turn.
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
  // Live records by the first turn at which they are dead: their start and memory.
  using Death = std::tuple<std::uint32_t, std::size_t, std::uint64_t>;
  std::priority_queue<Death, std::vector<Death>, std::greater<>> dying_;
};

}  // namespace arenite
