// A tensor viewed as outer x axis x inner.
#pragma once

#include "operand_checks.hpp"

namespace arenite {

struct AxisSplit {
  std::size_t outer = 1;
  std::size_t length = 1;
  std::size_t inner = 1;

  AxisSplit(const Operands& operands, const TensorView& view, std::size_t axis) {
    require(operands, axis < view.rank(), "the axis is out of range");
    for (std::size_t i = 0; i < view.rank(); ++i) {
      (i < axis ? outer : i == axis ? length : inner) *= view.shape[i];
    }
  }
};

}  // namespace arenite
