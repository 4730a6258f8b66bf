// LSTM over a sequence, in one direction or both.
#include <algorithm>

#include "kernels/functions.hpp"
#include "registry.hpp"
#include "steps/recurrent.hpp"

namespace arenite {

namespace {

constexpr std::size_t kGates = 4;  // input, forget, cell, output
// Units of which the products of all gates are in working memory at once.
constexpr std::size_t kUnitsAtOnce = kGemmPanel;

class LstmStep final : public Step {
 public:
  LstmStep(const Operands& operands, const RecurrentSizes& sizes)
      : sizes_(sizes),
        source_(operands.inputs[0]->as<float>()),
        bias_(operands.inputs[3]->as<float>()),
        target_(operands.outputs[0]->as<float>()),
        scratch_(reinterpret_cast<float*>(
            require_scratch(operands, 2 * tile_elements(sizes) * sizeof(float)))),
        times_at_once_(times_that_fit(operands, sizes)),
        weights_(packed_gates(operands.inputs[1]->as<float>(), sizes.directions * kGates,
                              sizes.units, sizes.inputs)),
        recurrent_(packed_gates(operands.inputs[2]->as<float>(), sizes.directions * kGates,
                                sizes.units, sizes.units)) {
    const auto& attributes = *operands.step.kernel_as_Lstm();
    clip_ = attributes.cell_clip();
    is_reverse_ = attributes.reverse();
    if (attributes.keeps_state()) {
      hidden_ = operands.inputs[4]->as<float>();
      cell_ = operands.inputs[5]->as<float>();
      return;
    }
    initial_hidden_ = operands.inputs[4];
    initial_cell_ = operands.inputs[5];
    hidden_ = operands.outputs[1]->as<float>();
    cell_ = operands.outputs[2]->as<float>();
    starts_anew_ = true;
  }

  void run() override {
    if (starts_anew_) {
      begin(initial_hidden_, hidden_);
      begin(initial_cell_, cell_);
    }
    for (std::size_t d = 0; d < sizes_.directions; ++d) {
      const bool is_backward = is_reverse_ || d == 1;
      for (std::size_t begun = 0; begun < sizes_.times; begun += times_at_once_) {
        const std::size_t count = std::min(times_at_once_, sizes_.times - begun);
        const std::size_t first = is_backward ? sizes_.times - begun - count : begun;
        if (times_at_once_ > 1) { multiply_inputs(first, count, d); }
        for (std::size_t i = 0; i < count; ++i) {
          const std::size_t slot = is_backward ? count - 1 - i : i;
          advance(first + slot, slot, d);
        }
      }
    }
  }

  std::size_t held_bytes() const override {
    return held_bytes_of(weights_) + held_bytes_of(recurrent_);
  }
  bool has_packed(std::size_t input) const override { return is_packed(input); }

 private:
  // Products of the units made at once with one of the weights.
  static std::size_t tile_elements(const RecurrentSizes& sizes) {
    return kGates * sizes.batch * std::min(sizes.units, kUnitsAtOnce);
  }

  // Of how many times working memory holds all products with the inputs: at least 1, of which it
  // holds those of a tile. Weights beyond the caches are read once for so many.
  static std::size_t times_that_fit(const Operands& operands, const RecurrentSizes& sizes) {
    const std::size_t given = operands.scratch == nullptr ? 0 : operands.scratch->size;
    const std::size_t elements = given / sizeof(float) - tile_elements(sizes);
    const std::size_t fit = elements / (kGates * sizes.state());
    const bool follow = !sizes.is_batch_major || sizes.batch == 1;  // one time after another
    return follow ? std::clamp<std::size_t>(fit, 1, sizes.times) : 1;
  }

  void multiply_inputs(std::size_t first, std::size_t count, std::size_t direction) const {
    for (std::size_t i = 0; i < kGates; ++i) {
      weights_[direction * kGates + i].multiply(source_ + sizes_.source(first), sizes_.inputs,
                                                count * sizes_.batch, 0, sizes_.units,
                                                scratch_ + i * times_at_once_ * sizes_.state());
    }
  }

  void begin(const TensorView* initial, float* state) const {
    const std::size_t count = sizes_.directions * sizes_.state();
    if (initial == nullptr) {
      std::fill(state, state + count, 0.0f);
    } else {
      std::copy(initial->as<float>(), initial->as<float>() + count, state);
    }
  }

  // Of the times whose products with the inputs are made at once, this is that of a slot.
  void advance(std::size_t time, std::size_t slot, std::size_t direction) const {
    float* hidden = hidden_ + direction * sizes_.state();
    float* target = target_ + sizes_.target(time, direction);
    const float* source = source_ + sizes_.source(time);
    for (std::size_t first = 0; first < sizes_.units; first += kUnitsAtOnce) {
      const std::size_t count = std::min(kUnitsAtOnce, sizes_.units - first);
      advance_units(first, count, direction, inputs(first, count, slot, direction, source), hidden,
                    target);
    }
    // Only now, as all units read the state from before.
    for (std::size_t b = 0; b < sizes_.batch; ++b) {
      const float* made = target + b * sizes_.target_stride();
      std::copy(made, made + sizes_.units, hidden + b * sizes_.units);
    }
  }

  // Products with the inputs, of some units: from one gate and one sequence to the next.
  struct Products {
    const float* data;
    std::size_t gate_stride;
    std::size_t stride;
  };

  Products inputs(std::size_t first, std::size_t count, std::size_t slot, std::size_t direction,
                  const float* source) const {
    if (times_at_once_ > 1) {
      return {scratch_ + slot * sizes_.state() + first, times_at_once_ * sizes_.state(),
              sizes_.units};
    }
    for (std::size_t i = 0; i < kGates; ++i) {
      weights_[direction * kGates + i].multiply(source, sizes_.source_stride(), sizes_.batch, first,
                                                count, scratch_ + i * sizes_.batch * count);
    }
    return {scratch_, sizes_.batch * count, count};
  }

  void advance_units(std::size_t first, std::size_t count, std::size_t direction,
                     const Products& products, const float* hidden, float* target) const {
    const std::size_t units = sizes_.units;
    float* recurrent = scratch_ + (times_at_once_ > 1 ? kGates * times_at_once_ * sizes_.state()
                                                      : kGates * sizes_.batch * count);
    for (std::size_t i = 0; i < kGates; ++i) {
      recurrent_[direction * kGates + i].multiply(hidden, units, sizes_.batch, first, count,
                                                  recurrent + i * sizes_.batch * count);
    }
    const float* bias = bias_ + direction * kGates * units + first;
    float* cell = cell_ + direction * sizes_.state() + first;
    for (std::size_t b = 0; b < sizes_.batch; ++b) {
      for (std::size_t j = 0; j < count; ++j) {
        const auto gate = [&](std::size_t index) {
          return products.data[index * products.gate_stride + b * products.stride + j] +
                 recurrent[(index * sizes_.batch + b) * count + j] + bias[index * units + j];
        };
        float& memory = cell[b * units + j];
        memory = sigmoid(gate(1)) * memory + sigmoid(gate(0)) * std::tanh(gate(2));
        memory = std::min(std::max(memory, -clip_), clip_);
        target[b * sizes_.target_stride() + first + j] = sigmoid(gate(3)) * std::tanh(memory);
      }
    }
  }

  RecurrentSizes sizes_;
  const float* source_;
  const float* bias_;
  float* target_;
  float* scratch_;  // products with the inputs: gates, times, batch, units; and with the state
  std::size_t times_at_once_;
  std::vector<PackedWeights> weights_;  // by direction and gate
  std::vector<PackedWeights> recurrent_;
  float clip_;
  bool is_reverse_;
  bool starts_anew_ = false;
  const TensorView* initial_hidden_ = nullptr;  // null: zeros
  const TensorView* initial_cell_ = nullptr;
  float* hidden_;
  float* cell_;
};

std::unique_ptr<Step> make_lstm(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_Lstm();
  const bool keeps_state = attributes.keeps_state();
  require(operands, operands.inputs.size() == 6 && operands.outputs.size() == (keeps_state ? 1 : 3),
          "it has too few or too many operands");
  for (std::size_t i = 0; i < 4; ++i) {
    require(operands, operands.inputs[i] != nullptr, "a required input is missing");
  }
  if (operands.inputs[0]->type == program::Type::int8) { return nullptr; }
  const auto sizes = recurrent_sizes(operands, kGates, attributes.batch_major());
  require_numbers(operands, operands.inputs[3], sizes.directions * kGates * sizes.units);
  require(operands, attributes.cell_clip() > 0, "cell_clip must be above 0");
  for (const std::size_t position : {4u, 5u}) {
    if (keeps_state || operands.inputs[position] != nullptr) {
      require_numbers(operands, operands.inputs[position], sizes.directions * sizes.state());
    }
    if (keeps_state) {
      require(operands, !operands.inputs[position]->is_constant, "a state must not be a constant");
    } else {
      require_numbers(operands, operands.outputs[position - 3], sizes.directions * sizes.state());
    }
  }
  return std::make_unique<LstmStep>(operands, sizes);
}

const Registration registered{program::Operator::Lstm, make_lstm};

}  // namespace

}  // namespace arenite
