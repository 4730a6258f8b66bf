// Random shapes and elements for kernels of 8-bit integers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>

#include "kernels/sliding_window.hpp"

namespace arenite::fuzz {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}
  int between(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  bool one_in(int n) { return between(1, n) == 1; }

 private:
  std::mt19937_64 random_;
};

// Exactly as many elements as are asked for, so that a read beyond them is seen.
template <typename T>
std::unique_ptr<T[]> random_elements(Dice& dice, std::size_t count, int low, int high) {
  std::unique_ptr<T[]> made(new T[count]);
  for (std::size_t i = 0; i < count; ++i) {
    made[i] =
        static_cast<T>(dice.one_in(16) ? (dice.one_in(2) ? low : high) : dice.between(low, high));
  }
  return made;
}

struct Case {
  SlidingWindow window;
  std::size_t groups, inputs, outputs;  // a group's
  std::size_t rows, columns, new_rows, new_columns;
  std::int32_t source_zero, filter_zero;
  bool is_depthwise;
};

inline Case random_case(Dice& dice, bool is_depthwise) {
  Case made{};
  made.is_depthwise = is_depthwise;
  auto& window = made.window;
  const int largest = dice.one_in(3) ? 1 : dice.one_in(4) ? 7 : 3;
  for (int axis = 0; axis < 2; ++axis) {
    window.kernel[axis] =
        static_cast<std::uint32_t>(dice.one_in(3) ? dice.between(1, largest) : largest);
    window.strides[axis] = static_cast<std::uint32_t>(dice.one_in(2) ? 1 : dice.between(1, 3));
    window.dilations[axis] = static_cast<std::uint32_t>(dice.one_in(4) ? dice.between(1, 3) : 1);
  }
  for (auto& margin : window.padding) {
    margin = static_cast<std::uint32_t>(dice.one_in(3) ? 0 : dice.between(0, 4));
  }
  const auto extent = [&window](int axis) {
    return window.dilations[axis] * (window.kernel[axis] - 1) + 1;
  };
  made.rows = static_cast<std::size_t>(dice.between(1, 14));
  made.columns = static_cast<std::size_t>(dice.between(1, dice.one_in(3) ? 40 : 14));
  while (made.rows + window.padding[0] + window.padding[2] < extent(0)) { ++made.rows; }
  while (made.columns + window.padding[3] + window.padding[1] < extent(1)) { ++made.columns; }
  made.new_rows =
      (made.rows + window.padding[0] + window.padding[2] - extent(0)) / window.strides[0] + 1;
  made.new_columns =
      (made.columns + window.padding[3] + window.padding[1] - extent(1)) / window.strides[1] + 1;
  if (is_depthwise) {
    made.groups = static_cast<std::size_t>(dice.between(1, dice.one_in(2) ? 20 : 150));
    made.inputs = 1;
    made.outputs = static_cast<std::size_t>(dice.one_in(3) ? dice.between(1, 5) : 1);
  } else {
    made.groups = static_cast<std::size_t>(dice.one_in(4) ? dice.between(1, 4) : 1);
    made.inputs = static_cast<std::size_t>(dice.between(1, dice.one_in(3) ? 9 : 70));
    made.outputs = static_cast<std::size_t>(dice.between(1, dice.one_in(3) ? 9 : 70));
    if (dice.one_in(30)) {  // several blocks of depth, or of outputs
      made.inputs = static_cast<std::size_t>(dice.between(500, 2500));
      made.rows = made.new_rows = 1;
      made.columns = made.new_columns = static_cast<std::size_t>(dice.between(1, 40));
      window = {{1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}};
    }
    if (dice.one_in(30)) { made.outputs = static_cast<std::size_t>(dice.between(200, 600)); }
  }
  return made;
}

}  // namespace arenite::fuzz
