// What every kernel of a product with a matrix of weights checks and needs to know.
#pragma once

#include <cstddef>

#include "operand_checks.hpp"

namespace arenite {

struct MatrixProduct {
  std::size_t rows;
  std::size_t num_inputs;
  std::size_t num_outputs;

  // Refuses rows and weights that do not fit; there must be an input, weights and an output.
  explicit MatrixProduct(const Operands& operands) {
    const auto& source = *operands.inputs[0];
    const auto& weights = *operands.inputs[1];
    const auto& result = *operands.outputs[0];
    require(operands, source.rank() > 0 && weights.rank() == 2 && result.rank() > 0,
            "it must read rows and a matrix");
    num_inputs = weights.shape[1];
    num_outputs = weights.shape[0];
    require(operands,
            num_inputs > 0 && num_outputs > 0 && source.shape.back() == num_inputs &&
                result.shape.back() == num_outputs &&
                source.num_elements() / num_inputs == result.num_elements() / num_outputs,
            "rows and weights do not fit");
    rows = source.num_elements() / num_inputs;
  }
};

}  // namespace arenite
