// LSTM in integers: 8-bit operands, 16-bit gates and cells, as TensorFlow Lite computes it.
#include <algorithm>
#include <cmath>

#include "kernels/fixed_point.hpp"
#include "kernels/processor.hpp"
#include "registry.hpp"
#include "steps/recurrent.hpp"

namespace arenite {

namespace {

using program::Type;

constexpr std::size_t kGates = 4;  // input, forget, cell, output
constexpr int kGateBits = 3;       // before the point of a gate's sum
constexpr float kGateScale = 1.0f / (1 << (15 - kGateBits));

// Products of weights with integers, as sums of gates: for each row what it begins with, and what
// its sum is multiplied by.
struct GateRows {
  const std::int8_t* weights;
  std::size_t depth;
  StepVector<std::int32_t> begins;
  StepVector<Multiplier> multipliers;

  GateRows(const Operands& operands, const TensorView& view, const TensorView& source,
           const std::int32_t* bias)
      : weights(view.as<std::int8_t>()), depth(view.shape[2]) {
    const std::size_t rows = view.shape[1];
    begins.reserve(rows);
    multipliers.reserve(rows);
    for (std::size_t row = 0; row < rows; ++row) {
      std::uint32_t total = 0;
      for (std::size_t i = 0; i < depth; ++i) {
        total += static_cast<std::uint32_t>(std::int32_t{weights[row * depth + i]});
      }
      total *= static_cast<std::uint32_t>(-std::int64_t{source.zero_point});
      total += bias == nullptr ? 0 : static_cast<std::uint32_t>(bias[row]);
      begins.push_back(static_cast<std::int32_t>(total));
      const float scale = view.scales[row] * source.scales[0] / kGateScale;
      multipliers.push_back(Multiplier::of(scale));
      require(operands, multipliers.back().fits(), "its scales do not fit each other");
    }
  }

  std::int32_t product(const std::int8_t* values, std::size_t row) const {
    auto total = static_cast<std::uint32_t>(begins[row]);
    for (std::size_t i = 0; i < depth; ++i) {
      total += static_cast<std::uint32_t>(std::int32_t{values[i]} * weights[row * depth + i]);
    }
    return multipliers[row].times(static_cast<std::int32_t>(total));
  }
};

// What is computed of the cells and the gates.
struct CellScales {
  int bits;                 // before the point of a cell
  std::int16_t clip;        // 0: none
  Multiplier hidden;        // of gate times cell, both without bits before the point
  std::int32_t zero_point;  // of the hidden state
};

class IntegerLstmStep final : public Step {
 public:
  IntegerLstmStep(const Operands& operands, const RecurrentSizes& sizes, const CellScales& scales)
      : sizes_(sizes),
        scales_(scales),
        is_reverse_(operands.step.kernel_as_Lstm()->reverse()),
        source_(operands.inputs[0]->as<std::int8_t>()),
        target_(operands.outputs[0]->as<std::int8_t>()),
        hidden_(operands.inputs[4]->as<std::int8_t>()),
        cell_(operands.inputs[5]->as<std::int16_t>()),
        inputs_(operands, *operands.inputs[1], *operands.inputs[0],
                operands.inputs[3]->as<std::int32_t>()),
        recurrent_(operands, *operands.inputs[2], *operands.inputs[4], nullptr) {}

  void run() override {
    with_widest_vectors([this] {
      for (std::size_t i = 0; i < sizes_.times; ++i) {
        const std::size_t time = is_reverse_ ? sizes_.times - 1 - i : i;
        for (std::size_t b = 0; b < sizes_.batch; ++b) {
          advance(source_ + sizes_.source(time) + b * sizes_.source_stride(), b,
                  target_ + sizes_.target(time, 0) + b * sizes_.target_stride());
        }
      }
    });
  }

 private:
  void advance(const std::int8_t* source, std::size_t b, std::int8_t* target) const {
    std::int8_t* hidden = hidden_ + b * sizes_.units;
    std::int16_t* cell = cell_ + b * sizes_.units;
    for (std::size_t j = 0; j < sizes_.units; ++j) {
      const auto gate = [&](std::size_t index) {
        const std::size_t row = index * sizes_.units + j;
        const std::int16_t first = saturate16(inputs_.product(source, row));
        return saturate16(sum(recurrent_.product(hidden, row), std::int32_t{first}));
      };
      const std::int16_t kept = fixed16::logistic(gate(1), kGateBits);
      const std::int16_t taken = fixed16::logistic(gate(0), kGateBits);
      const std::int16_t fresh = fixed16::tanh(gate(2), kGateBits);
      const std::int32_t old = divide_by_power(std::int32_t{kept} * cell[j], 15);
      const std::int32_t added = divide_by_power(std::int32_t{taken} * fresh, 15 + scales_.bits);
      cell[j] = saturate16(static_cast<std::int16_t>(old) + static_cast<std::int16_t>(added));
      if (scales_.clip > 0) {
        cell[j] = std::clamp<std::int16_t>(cell[j], static_cast<std::int16_t>(-scales_.clip),
                                           scales_.clip);
      }
      const std::int32_t shown = fixed16::logistic(gate(3), kGateBits) *
                                 std::int32_t{fixed16::tanh(cell[j], scales_.bits)};
      target[j] = static_cast<std::int8_t>(std::clamp<std::int32_t>(
          sum(scales_.hidden.times(shown), scales_.zero_point), -128, 127));
    }
    // All gates have read the old state.
    std::copy(target, target + sizes_.units, hidden);
  }

  RecurrentSizes sizes_;
  CellScales scales_;
  bool is_reverse_;
  const std::int8_t* source_;
  std::int8_t* target_;
  std::int8_t* hidden_;
  std::int16_t* cell_;
  GateRows inputs_;
  GateRows recurrent_;
};

CellScales checked_scales(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_Lstm();
  for (const std::size_t position : {0u, 4u, 5u}) {
    require(operands, operands.inputs[position]->scales.size() == 1,
            "an operand needs exactly one scale");
  }
  for (const std::size_t position : {1u, 2u}) {
    const auto& weights = *operands.inputs[position];
    require(operands, weights.axis == 1 && weights.scales.size() == weights.shape[1],
            "its weights have scales that are not those of its gates");
  }
  const float scale = operands.inputs[5]->scales[0];
  int exponent = 0;
  require(operands, std::frexp(scale, &exponent) == 0.5f && exponent >= -14 && exponent <= -8,
          "the scale of its cells is not a power of 2 from 2^-15 to 2^-9");
  CellScales result{14 + exponent, 0, {}, attributes.hidden_zero_point()};
  if (std::isfinite(attributes.cell_clip())) {
    result.clip = static_cast<std::int16_t>(std::min(attributes.cell_clip() / scale, 32767.0f));
  }
  const double hidden = std::ldexp(1.0, -30) / attributes.hidden_scale();
  result.hidden = Multiplier::of(static_cast<float>(hidden));
  require(operands, result.hidden.fits(), "the scale of its hidden state does not fit");
  return result;
}

std::unique_ptr<Step> make_integer_lstm(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_Lstm();
  require(operands, attributes.keeps_state(), "an integer LSTM must keep its state");
  require(operands, attributes.cell_clip() > 0, "cell_clip must be above 0");
  const auto sizes = recurrent_sizes(operands, kGates, attributes.batch_major(), Type::int8);
  require(operands, sizes.directions == 1, "an integer LSTM must have one direction");
  const auto& bias = *operands.inputs[3];
  require_elements(operands, &bias, Type::int32, kGates * sizes.units);
  for (const std::size_t position : {1u, 2u, 3u}) {
    require(operands, operands.inputs[position]->is_constant, "its weights must be constant");
  }
  require_elements(operands, operands.inputs[4], Type::int8, sizes.state());
  require_elements(operands, operands.inputs[5], Type::int16, sizes.state());
  for (const std::size_t position : {4u, 5u}) {
    require(operands, !operands.inputs[position]->is_constant, "a state must not be a constant");
  }
  return std::make_unique<IntegerLstmStep>(operands, sizes, checked_scales(operands));
}

// Behind the one of numbers, which has checked how many operands there are.
const Registration registered{program::Operator::Lstm, make_integer_lstm, KernelSet::fallback};

}  // namespace

}  // namespace arenite
