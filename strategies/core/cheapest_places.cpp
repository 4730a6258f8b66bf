#include "cheapest_places.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <utility>

namespace arenite {
namespace {

constexpr std::size_t kFew = 48;  // edges that are quicker to compare than to count
constexpr int kDigitBits = 9;
constexpr std::size_t kDigits = std::size_t{1} << kDigitBits;

}  // namespace

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

std::int64_t CheapestPlaces::find() {
  sort_edges();
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
