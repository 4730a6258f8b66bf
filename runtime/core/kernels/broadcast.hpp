// Two or three arrays walked together, each repeated along the axes where it has length 1.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "operand_checks.hpp"

namespace arenite {

// The shape of a tensor, or some of its last axes.
struct Shape {
  const std::size_t* lengths = nullptr;
  std::size_t rank = 0;

  static Shape of(const TensorView& view, std::size_t first = 0) {
    return {view.shape.data() + first, view.rank() - first};
  }
  std::size_t operator[](std::size_t axis) const { return lengths[axis]; }
};

// The walk over N inputs and an output, in elements. The innermost axis is a run.
template <std::size_t N>
struct Broadcast {
  struct Axis {
    std::size_t length;
    std::array<std::size_t, N> strides;
  };

  StepVector<Axis> outer;  // outermost first
  Axis inner{1, {}};
  std::size_t num_rows = 1;

  Broadcast() = default;

  explicit Broadcast(const Operands& operands)
      : Broadcast(operands, Shape::of(*operands.outputs[0]), shapes_of(operands)) {}

  // Of the inputs' shapes and the output's, or of some of their last axes.
  Broadcast(const Operands& operands, const Shape& target, const std::array<Shape, N>& shapes) {
    const std::size_t rank = target.rank;
    std::array<std::size_t, N> steps;
    steps.fill(1);
    StepVector<Axis> axes(rank);
    for (std::size_t place = rank; place-- > 0;) {
      axes[place].length = target[place];
      bool is_reached = false;
      for (std::size_t i = 0; i < N; ++i) {
        const Shape& shape = shapes[i];
        require(operands, shape.rank <= rank, "an input has more axes than the output");
        const std::size_t missing = rank - shape.rank;
        const std::size_t length = place < missing ? 1 : shape[place - missing];
        require(operands, length == 1 || length == target[place],
                "the input shapes do not broadcast to the output shape");
        is_reached = is_reached || length == target[place];
        axes[place].strides[i] = length == 1 ? 0 : steps[i];
        steps[i] *= length;
      }
      require(operands, is_reached, "the output is longer than each input");
    }
    outer.reserve(rank);
    for (const Axis& axis : axes) {
      if (axis.length == 1) { continue; }
      if (!outer.empty() && continues(outer.back(), axis)) {
        outer.back() = {outer.back().length * axis.length, axis.strides};
      } else {
        outer.push_back(axis);
      }
    }
    if (!outer.empty()) {
      inner = outer.back();
      outer.pop_back();
    }
    for (const Axis& axis : outer) { num_rows *= axis.length; }
  }

  // First element of a row in each input.
  std::array<std::size_t, N> starts(std::size_t row) const {
    std::array<std::size_t, N> found{};
    for (std::size_t place = outer.size(); place-- > 0;) {
      const std::size_t index = row % outer[place].length;
      row /= outer[place].length;
      for (std::size_t i = 0; i < N; ++i) { found[i] += index * outer[place].strides[i]; }
    }
    return found;
  }

 private:
  static std::array<Shape, N> shapes_of(const Operands& operands) {
    std::array<Shape, N> shapes;
    for (std::size_t i = 0; i < N; ++i) { shapes[i] = Shape::of(*operands.inputs[i]); }
    return shapes;
  }

  static bool continues(const Axis& before, const Axis& axis) {
    for (std::size_t i = 0; i < N; ++i) {
      if (before.strides[i] != axis.strides[i] * axis.length) { return false; }
    }
    return true;
  }
};

}  // namespace arenite
