// Boxes of detectors.
#pragma once

#include <algorithm>

namespace arenite {

// Two corners, each a place on both axes.
struct Box {
  float low[2];
  float high[2];

  float area() const { return (high[0] - low[0]) * (high[1] - low[1]); }

  // Whether they share more than a side.
  bool meets(const Box& other) const {
    return low[0] < other.high[0] && other.low[0] < high[0] && low[1] < other.high[1] &&
           other.low[1] < high[1];
  }

  // Intersection over union; 0 if either has no area.
  float overlap(const Box& other) const {
    if (area() <= 0 || other.area() <= 0) { return 0.0f; }
    const float both = shared(other, 0) * shared(other, 1);
    return both / (area() + other.area() - both);
  }

 private:
  float shared(const Box& other, int axis) const {
    return std::max(std::min(high[axis], other.high[axis]) - std::max(low[axis], other.low[axis]),
                    0.0f);
  }
};

}  // namespace arenite
