// Helpers of recurrent layers: sizes, packed weights and the places of time steps.
#pragma once

#include <cmath>
#include <vector>

#include "kernels/gemm.hpp"
#include "operand_checks.hpp"

namespace arenite {

// Sizes of a layer that reads x, weights (directions, gates * units, inputs) and recurrent
// weights (directions, gates * units, units).
struct RecurrentSizes {
  std::size_t times;
  std::size_t batch;
  std::size_t inputs;
  std::size_t units;
  std::size_t directions;
  bool is_batch_major;

  // First element of x at a time, and of y for a direction; then from one sequence to the next.
  std::size_t source(std::size_t time) const {
    return time * inputs * (is_batch_major ? 1 : batch);
  }
  std::size_t source_stride() const { return inputs * (is_batch_major ? times : 1); }
  std::size_t target(std::size_t time, std::size_t direction) const {
    return is_batch_major ? (time * directions + direction) * units
                          : (time * directions + direction) * batch * units;
  }
  std::size_t target_stride() const { return units * (is_batch_major ? times * directions : 1); }
  std::size_t state() const { return batch * units; }
};

inline void require_elements(const Operands& operands, const TensorView* view, program::Type type,
                             std::size_t count) {
  require(operands, view != nullptr && view->type == type,
          type == program::Type::float32 ? "all operands must be present and float32"
                                         : "an operand is missing or has an unsupported type");
  require(operands, view->num_elements() == count, "an operand has the wrong size");
}

inline void require_numbers(const Operands& operands, const TensorView* view, std::size_t count) {
  require_elements(operands, view, program::Type::float32, count);
}

// Requires that x, the weights and y fit each other, and are of this type.
inline RecurrentSizes recurrent_sizes(const Operands& operands, std::size_t gates,
                                      bool is_batch_major,
                                      program::Type type = program::Type::float32) {
  const auto& x = *operands.inputs[0];
  const auto& weights = *operands.inputs[1];
  const auto& recurrent = *operands.inputs[2];
  require(operands, x.rank() == 3 && weights.rank() == 3 && recurrent.rank() == 3,
          "its input or weights have another rank");
  RecurrentSizes sizes{x.shape[is_batch_major ? 1 : 0],
                       x.shape[is_batch_major ? 0 : 1],
                       x.shape[2],
                       recurrent.shape[2],
                       weights.shape[0],
                       is_batch_major};
  require(operands, sizes.directions == 1 || sizes.directions == 2,
          "only one or two directions are supported");
  const std::size_t rows = gates * sizes.units;
  require(operands,
          weights.shape[1] == rows && weights.shape[2] == sizes.inputs &&
              recurrent.shape[0] == sizes.directions && recurrent.shape[1] == rows,
          "its weights do not fit");
  require(operands, operands.outputs[0]->size > 0, "its output is empty");
  require_elements(operands, &x, type, sizes.times * sizes.batch * sizes.inputs);
  require_elements(operands, &weights, type, weights.num_elements());
  require_elements(operands, &recurrent, type, recurrent.num_elements());
  require_elements(operands, operands.outputs[0], type,
                   sizes.times * sizes.directions * sizes.state());
  return sizes;
}

// Weights of a gate in one direction: `rows` outputs of `depth` inputs, as the kernel reads them.
struct PackedWeights {
  std::size_t depth;
  std::vector<float> packed;  // on the heap for as long as the step lives

  PackedWeights(const float* weights, std::size_t row_count, std::size_t column_count)
      : depth(column_count), packed(gemm_scratch(row_count, column_count)) {
    gemm_pack(weights, 1, depth, row_count, depth, packed.data());
  }

  std::size_t held_bytes() const { return packed.capacity() * sizeof(float); }

  // Writes batch x count products, of the rows from `first` on, a multiple of kGemmPanel, with
  // vectors that are `stride` elements apart.
  void multiply(const float* vectors, std::size_t stride, std::size_t batch, std::size_t first,
                std::size_t count, float* products) const {
    gemm_rows({vectors, stride, 1}, packed.data() + first * depth, count, depth, 0, batch,
              products);
  }
};

// Packs the weights of each gate, those of one direction after those of the other.
inline std::vector<PackedWeights> packed_gates(const float* weights, std::size_t count,
                                               std::size_t units, std::size_t depth) {
  std::vector<PackedWeights> packed;
  for (std::size_t i = 0; i < count; ++i) {
    packed.emplace_back(weights + i * units * depth, units, depth);
  }
  return packed;
}

// The inputs of a recurrent layer that it keeps as PackedWeights.
inline bool is_packed(std::size_t input) { return input == 1 || input == 2; }

}  // namespace arenite
