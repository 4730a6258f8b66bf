// Records that need only some bytes of their rectangle, and where two get in each other's way.
#pragma once

#include <cstdint>
#include <vector>

namespace arenite {

// Bytes from the first of their record, in use for some steps; the lifetime is half-open.
struct Stair {
  std::int64_t offset;
  std::int64_t size;
  std::int64_t start;
  std::int64_t end;
};

// Stairs that move together; a plain record is one stair. `fixed` is the offset that it must
// have, or -1.
struct RigidRecord {
  std::vector<Stair> stairs;
  std::int64_t size;
  std::int64_t alignment;
  std::int64_t fixed;
};

// The first record must not lie between `below` and `above` bytes above the other, neither
// included. Two records may have several such intervals, none of which overlap.
struct Conflict {
  int other;
  std::int64_t below;
  std::int64_t above;
};

// Returns by record its conflicts, by the index of the other and then by byte.
//
// Cost: O(n log n + pairs of stairs that are live at one step).
std::vector<std::vector<Conflict>> find_conflicts(const std::vector<RigidRecord>& records);

}  // namespace arenite
