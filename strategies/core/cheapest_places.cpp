#include "cheapest_places.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <utility>

namespace arenite {
namespace {

constexpr std::size_t kFew = 48;              // edges that are quicker to compare than to count
constexpr std::int64_t kOffsetsPerEdge = 16;  // that are quicker to look at than an edge
constexpr int kDigitBits = 9;
constexpr std::size_t kDigits = std::size_t{1} << kDigitBits;

}  // namespace

void CheapestPlaces::begin(std::int64_t first, std::int64_t last) {
  intervals_.clear();
  places_.clear();
  first_ = first;
  last_ = last;
}

std::int64_t CheapestPlaces::find() {
  const auto num_edges = static_cast<std::int64_t>(2 * intervals_.size());
  return last_ - first_ < kOffsetsPerEdge * num_edges ? find_by_offset() : find_by_edge();
}

// Adds up the weights of each offset.
std::int64_t CheapestPlaces::find_by_offset() {
  const auto count = static_cast<std::size_t>(last_ - first_ + 1);
  weights_.assign(count + 1, 0);
  for (const Interval& each : intervals_) {
    weights_[static_cast<std::size_t>(each.begin - first_)] += each.weight;
    weights_[static_cast<std::size_t>(each.end - first_)] -= each.weight;
  }
  std::int64_t weight = 0;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (std::size_t at = 0; at < count; ++at) {
    weight += weights_[at];
    weights_[at] = weight;
    least = std::min(least, weight);
  }
  weights_[count] = -1;  // ends the last interval
  std::int64_t before = -1;
  for (std::size_t at = 0; at < count; ++at) {
    const std::int64_t here = weights_[at];
    if (here == least && (before != least || weights_[at + 1] != least)) {
      places_.push_back(first_ + static_cast<std::int64_t>(at));
    }
    before = here;
  }
  return least;
}

// Sorts the edges by position, digit by digit from the last: there are many of few digits.
void CheapestPlaces::sort_edges() {
  if (edges_.size() <= kFew) {
    std::sort(edges_.begin(), edges_.end());
    return;
  }
  sorted_.resize(edges_.size());
  const auto widest = static_cast<std::uint64_t>(2 * (last_ - first_));
  for (int shift = 0; shift < 64 && (widest >> shift) != 0; shift += kDigitBits) {
    const auto digit = [&](const Edge& edge) {
      return (static_cast<std::uint64_t>(edge.position - 2 * first_) >> shift) % kDigits;
    };
    std::array<std::size_t, kDigits> ends{};
    for (const Edge& edge : edges_) ++ends[digit(edge)];
    std::size_t sum = 0;
    for (std::size_t& end : ends) sum += std::exchange(end, sum);
    for (const Edge& edge : edges_) sorted_[ends[digit(edge)]++] = edge;
    edges_.swap(sorted_);
  }
}

// Goes from edge to edge: for offsets that are too many to look at each.
std::int64_t CheapestPlaces::find_by_edge() {
  edges_.clear();
  std::int64_t weight = 0;
  for (const Interval& each : intervals_) {
    if (each.begin == first_) {
      weight += each.weight;
    } else {
      edges_.push_back({2 * each.begin - 1, each.weight});
    }
    if (each.end <= last_) edges_.push_back({2 * each.end, -each.weight});
  }
  sort_edges();
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
