#include "moving_bytes.hpp"

#include <iterator>

namespace arenite {

void MovingBytes::note(Stretches& all, const Extent& extent, std::size_t turn) {
  auto& stretches = all[extent.memory];
  auto next = stretches.lower_bound(extent.begin);
  if (next != stretches.begin() && std::prev(next)->second.end > extent.begin) { --next; }
  // What the new one covers goes; what sticks out on either side stays.
  while (next != stretches.end() && next->first < extent.end) {
    const auto [begin, old] = *next;
    next = stretches.erase(next);
    if (begin < extent.begin) { stretches.emplace(begin, Stretch{extent.begin, old.turn}); }
    if (old.end > extent.end) { next = stretches.emplace(extent.end, old).first; }
  }
  stretches.emplace(extent.begin, Stretch{extent.end, turn});
}

bool MovingBytes::is_any(Stretches& all, const Extent& extent, std::size_t done) {
  auto& stretches = all[extent.memory];
  auto next = stretches.lower_bound(extent.begin);
  if (next != stretches.begin() && std::prev(next)->second.end > extent.begin) { --next; }
  while (next != stretches.end() && next->first < extent.end) {
    if (next->second.turn >= done) { return true; }
    next = stretches.erase(next);
  }
  return false;
}

}  // namespace arenite
