#include "ejection_search.hpp"

#include <algorithm>
#include <numeric>

namespace arenite {
namespace {

constexpr std::int64_t kMostPairs = 40'000'000;             // 160 MB
constexpr std::int64_t kImmovable = std::int64_t{1} << 40;  // more than weights add up to
constexpr std::int64_t kNodesPerRecordToShift = 20;
constexpr std::int64_t kNodesPerRecordToRestart = 300;
constexpr int kShifts = 3;
constexpr std::int64_t kNodesBetweenPolls = 256;

std::int64_t divide_down(std::int64_t value, std::int64_t by) {
  return value >= 0 ? value / by : -((-value + by - 1) / by);
}

}  // namespace

EjectionSearch::EjectionSearch(const Sections& sections)
    : sections_(sections), limits_(sections.num_records()) {
  for (const Sections::Record& record : sections.records) {
    spots_.push_back({0, record.size, record.fixed >= 0 ? kImmovable : 1, false});
  }
  // In order of their start, so those that meet a record follow it until they start too late.
  std::int64_t num_pairs = 0;
  for (const Sections::Record& record : sections.records) {
    num_pairs += 2 * (sections.starting[record.last] - sections.starting[record.first]);
  }
  if (num_pairs > kMostPairs) return;
  meets_.resize(sections.num_records());
  for (int a = 0; a < sections.num_records(); ++a) {
    for (int b = a + 1; b < sections.starting[sections.records[a].last]; ++b) {
      meets_[a].push_back(b);
      meets_[b].push_back(a);
    }
  }
}

void EjectionSearch::begin_at(const std::vector<std::int64_t>& offsets, std::int64_t capacity) {
  start_order_.resize(limits_.size());
  std::iota(start_order_.begin(), start_order_.end(), 0);
  const auto is_lower = [&](int a, int b) {
    const Sections::Record& first = sections_.records[a];
    const Sections::Record& second = sections_.records[b];
    if ((first.fixed >= 0) != (second.fixed >= 0)) return first.fixed >= 0;
    return offsets[first.source] < offsets[second.source];
  };
  std::stable_sort(start_order_.begin(), start_order_.end(), is_lower);
  for (int index = 0; index < sections_.num_records(); ++index) {
    const std::int64_t room = capacity - sections_.top(sections_.records[index], 0);
    limits_[index] = divide_down(room, sections_.unit);
  }
  restart();
}

// Drops the records of the plan, from the bottom up; what does not fit waits.
void EjectionSearch::restart() {
  nodes_since_start_ = 0;
  waiting_.clear();
  for (Spot& spot : spots_) spot.is_placed = false;
  for (const int record : start_order_) {
    if (find_places(record) == 0) {
      put(record, places_.front());
    } else {
      waiting_.push_back(record);
    }
  }
}

bool EjectionSearch::run(std::int64_t max_nodes, std::mt19937_64& random,
                         const ShouldStop& should_stop) {
  num_nodes_ = 0;
  std::int64_t next_poll = kNodesBetweenPolls;
  const std::int64_t most_since_start = kNodesPerRecordToRestart * sections_.num_records();
  while (!waiting_.empty()) {
    if (num_nodes_ >= max_nodes) return false;
    if (num_nodes_++ >= next_poll) {
      if (should_stop()) return false;
      next_poll = num_nodes_ + kNodesBetweenPolls;
    }
    if (++nodes_since_start_ > most_since_start) {
      restart();
      continue;
    }
    const std::size_t turn = random() % waiting_.size();
    const int record = waiting_[turn];
    const std::int64_t displaced = find_places(record);
    if (displaced >= kImmovable) {
      // Fixed records are in its way wherever it goes: no plan fits.
      num_nodes_ = std::max(num_nodes_, max_nodes);
      return false;
    }
    waiting_[turn] = waiting_.back();
    waiting_.pop_back();
    // Half of the time as low as may be, for that leaves the most room above.
    put(record, random() % 2 == 0 ? places_.front() : places_[random() % places_.size()]);
    if (displaced == 0) continue;
    ++spots_[record].weight;
    if (nodes_since_start_ < kNodesPerRecordToShift * sections_.num_records()) continue;
    for (int shifts = 0; shifts < kShifts; ++shifts) shift_neighbour(record, random);
  }
  return true;
}

// Puts a record there. What is in its way has to wait.
void EjectionSearch::put(int record, std::int64_t offset) {
  Spot& own = spots_[record];
  for (const int index : meets_[record]) {
    Spot& other = spots_[index];
    if (!other.is_placed || other.offset >= offset + own.size) continue;
    if (offset >= other.offset + other.size) continue;
    other.is_placed = false;
    waiting_.push_back(index);
  }
  own.offset = offset;
  own.is_placed = true;
}

// Moves a record beside this one to somewhere else that is free, so that the same does not
// happen over and over.
void EjectionSearch::shift_neighbour(int record, std::mt19937_64& random) {
  if (meets_[record].empty()) return;
  const int other = meets_[record][random() % meets_[record].size()];
  if (!spots_[other].is_placed) return;
  ++num_nodes_;
  ++nodes_since_start_;
  spots_[other].is_placed = false;
  find_places(other);
  put(other, places_[random() % places_.size()]);
}

// Finds the offsets of a record where what it displaces weighs least: the ends of the
// intervals of such offsets, from the lowest up. Returns that weight, 0 if nothing is in the
// way.
std::int64_t EjectionSearch::find_places(int record) {
  const Sections::Record& own = sections_.records[record];
  places_.clear();
  if (limits_[record] < std::max<std::int64_t>(own.fixed, 0)) return kImmovable;
  // In multiples of its alignment, a record in its way forbids those between two.
  const std::int64_t first = own.fixed >= 0 ? own.fixed / own.alignment : 0;
  const std::int64_t last = own.fixed >= 0 ? first : limits_[record] / own.alignment;
  cheapest_.begin(first, last);
  for (const int index : meets_[record]) {
    const Spot& other = spots_[index];
    if (!other.is_placed) continue;
    std::int64_t below = other.offset - own.size;
    std::int64_t above = other.offset + other.size;
    if (own.alignment > 1) {
      below = divide_down(below, own.alignment);
      above = divide_down(above + own.alignment - 1, own.alignment);
    }
    cheapest_.forbid(below, above, other.weight);
  }
  const std::int64_t least = cheapest_.find();
  for (const std::int64_t place : cheapest_.places()) places_.push_back(place * own.alignment);
  return least;
}

}  // namespace arenite
