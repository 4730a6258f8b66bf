#include "rigid_record.hpp"

#include <algorithm>
#include <utility>

namespace arenite {
namespace {

struct Piece {
  const Stair* stair;
  int record;
};

// Merges intervals that overlap; those that only touch leave an offset between them.
void merge(std::vector<Conflict>& conflicts) {
  std::sort(conflicts.begin(), conflicts.end(), [](const Conflict& a, const Conflict& b) {
    return a.other != b.other ? a.other < b.other : a.below < b.below;
  });
  std::size_t kept = 0;
  for (const Conflict& each : conflicts) {
    if (kept > 0 && conflicts[kept - 1].other == each.other &&
        each.below < conflicts[kept - 1].above) {
      conflicts[kept - 1].above = std::max(conflicts[kept - 1].above, each.above);
    } else {
      conflicts[kept++] = each;
    }
  }
  conflicts.resize(kept);
  conflicts.shrink_to_fit();
}

}  // namespace

std::vector<std::vector<Conflict>> find_conflicts(const std::vector<RigidRecord>& records) {
  std::vector<Piece> pieces;
  for (std::size_t index = 0; index < records.size(); ++index) {
    for (const Stair& stair : records[index].stairs) {
      pieces.push_back({&stair, static_cast<int>(index)});
    }
  }
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const Piece& a, const Piece& b) { return a.stair->start < b.stair->start; });
  std::vector<std::vector<Conflict>> found(records.size());
  for (std::size_t first = 0; first < pieces.size(); ++first) {
    const Stair& a = *pieces[first].stair;
    const int record = pieces[first].record;
    // In order of their start: what meets a piece follows it until it starts too late.
    for (std::size_t second = first + 1; second < pieces.size(); ++second) {
      const Stair& b = *pieces[second].stair;
      const int other = pieces[second].record;
      if (b.start >= a.end) break;
      if (other == record) continue;
      const std::int64_t below = b.offset - a.offset - a.size;
      const std::int64_t above = b.offset - a.offset + b.size;
      found[record].push_back({other, below, above});
      found[other].push_back({record, -above, -below});
    }
  }
  for (std::vector<Conflict>& conflicts : found) merge(conflicts);
  return found;
}

}  // namespace arenite
