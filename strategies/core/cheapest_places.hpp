// Where a record displaces what weighs least.
#pragma once

#include <cstdint>
#include <vector>

namespace arenite {

// Offsets are counted in multiples of the record's alignment. What is in its way forbids those
// between two, neither included; each such interval has a weight.
class CheapestPlaces {
 public:
  // Begins a record that may lie at `first` to `last`.
  void begin(std::int64_t first, std::int64_t last);
  void forbid(std::int64_t below, std::int64_t above, std::int64_t weight);
  // Finds the ends of the intervals of offsets where what is in the way weighs least, from the
  // lowest up. Returns that weight, 0 if nothing is in the way.
  std::int64_t find();

  const std::vector<std::int64_t>& places() const { return places_; }

 private:
  // Where an interval begins to count, or no longer does.
  struct Edge {
    std::int64_t position;  // twice the offset; odd if it begins
    std::int64_t weight;
    bool operator<(const Edge& other) const { return position < other.position; }
  };

  void sort_edges();

  std::vector<Edge> edges_;
  std::vector<Edge> sorted_;  // while they are sorted
  std::vector<std::int64_t> places_;
  std::int64_t first_ = 0;
  std::int64_t last_ = 0;
  std::int64_t weight_at_first_ = 0;
};

}  // namespace arenite
