// Sums in several lanes: vectorised, and more exact than one after another.
#pragma once

#include <cstddef>

namespace arenite {

// Combines what `element(i)` is for each i below `count`, in any order; 0 elements are `start`.
template <typename T, typename Element, typename Combine>
T fold(std::size_t count, T start, const Element& element, const Combine& combine) {
  constexpr std::size_t kLanes = 16;
  // Of a vector: a loop over more of ARM64's would keep its lanes in memory.
#ifdef __aarch64__
  constexpr std::size_t kGroup = 4;
#else
  constexpr std::size_t kGroup = kLanes;
#endif
  T total = start;
  std::size_t done = 0;
  if (count >= kLanes) {
    T lanes[kLanes];
    for (std::size_t lane = 0; lane < kLanes; ++lane) { lanes[lane] = element(lane); }
    for (done = kLanes; done + kLanes <= count; done += kLanes) {
#pragma GCC unroll 4
      for (std::size_t group = 0; group < kLanes; group += kGroup) {
#pragma GCC unroll 1
        for (std::size_t lane = group; lane < group + kGroup; ++lane) {
          lanes[lane] = combine(lanes[lane], element(done + lane));
        }
      }
    }
    for (const T lane : lanes) { total = combine(total, lane); }
  }
  for (; done < count; ++done) { total = combine(total, element(done)); }
  return total;
}

template <typename Element>
float sum_of(std::size_t count, const Element& element) {
  return fold(count, 0.0f, element, [](float a, float b) { return a + b; });
}

}  // namespace arenite
