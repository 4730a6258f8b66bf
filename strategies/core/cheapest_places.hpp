// Where a record displaces what weighs least.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace arenite {

// Offsets are counted in multiples of the record's alignment. What is in its way forbids those
// between two, neither included; each such interval has a weight.
class CheapestPlaces {
 public:
  // Begins a record that may lie at `first` to `last`.
  void begin(std::int64_t first, std::int64_t last);
  void forbid(std::int64_t below, std::int64_t above, std::int64_t weight) {
    const Interval forbidden{std::max(below + 1, first_), std::min(above, last_ + 1), weight};
    if (forbidden.begin < forbidden.end) intervals_.push_back(forbidden);
  }
  // Finds the ends of the intervals of offsets where what is in the way weighs least, from the
  // lowest up. Returns that weight, 0 if nothing is in the way.
  std::int64_t find();

  const std::vector<std::int64_t>& places() const { return places_; }

 private:
  // Offsets from `begin` up to `end`, without it, that something in the way forbids.
  struct Interval {
    std::int64_t begin;
    std::int64_t end;
    std::int64_t weight;
  };
  // Where an interval begins to count, or no longer does.
  struct Edge {
    std::int64_t position;  // twice the offset; odd if it begins
    std::int64_t weight;
    bool operator<(const Edge& other) const { return position < other.position; }
  };

  std::int64_t find_by_offset();
  std::int64_t find_by_edge();
  void sort_edges();

  std::vector<Interval> intervals_;
  std::vector<std::int64_t> weights_;  // by offset, when there are few
  std::vector<Edge> edges_;
  std::vector<Edge> sorted_;  // while they are sorted
  std::vector<std::int64_t> places_;
  std::int64_t first_ = 0;
  std::int64_t last_ = 0;
};

}  // namespace arenite
