#include "cheapest_places.hpp"

#include <algorithm>
#include <limits>

namespace arenite {

void CheapestPlaces::begin(std::int64_t first, std::int64_t last) {
  edges_.clear();
  places_.clear();
  first_ = first;
  last_ = last;
  weight_at_first_ = 0;
}

void CheapestPlaces::forbid(std::int64_t below, std::int64_t above, std::int64_t weight) {
  if (below >= last_ || above <= first_) return;
  if (below < first_) {
    weight_at_first_ += weight;
  } else {
    edges_.push_back({2 * below + 1, weight});
  }
  if (above <= last_) edges_.push_back({2 * above, -weight});
}

std::int64_t CheapestPlaces::find() {
  std::sort(edges_.begin(), edges_.end());
  std::int64_t weight = weight_at_first_;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  std::int64_t from = first_;
  std::size_t next = 0;
  while (true) {
    while (next < edges_.size() && edges_[next].position == 2 * from) {
      weight += edges_[next++].weight;
    }
    // Where something else ends before anything begins, less is displaced there.
    if (next == edges_.size() || edges_[next].weight > 0) {
      const std::int64_t to = next == edges_.size() ? last_ : edges_[next].position / 2;
      if (weight < least) places_.clear();
      if (weight <= least) {
        places_.push_back(from);
        if (to != from) places_.push_back(to);
      }
      least = std::min(least, weight);
      while (next < edges_.size() && edges_[next].weight > 0) weight += edges_[next++].weight;
    }
    if (next == edges_.size()) return least;
    from = edges_[next].position / 2;
  }
}

}  // namespace arenite
