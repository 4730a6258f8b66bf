// Gated recurrent units over a sequence, in one direction or both.
#include <algorithm>

#include "kernels/functions.hpp"
#include "registry.hpp"
#include "steps/recurrent.hpp"

namespace arenite {

namespace {

constexpr std::size_t kGates = 3;  // update, reset, hidden

class GruStep final : public Step {
 public:
  GruStep(const Operands& operands, const RecurrentSizes& sizes)
      : sizes_(sizes),
        source_(operands.inputs[0]->as<float>()),
        bias_(operands.inputs[3]->as<float>()),
        recurrent_bias_(operands.inputs[4]->as<float>()),
        initial_(operands.inputs[5]),
        target_(operands.outputs[0]->as<float>()),
        hidden_(operands.outputs[1]->as<float>()),
        scratch_(reinterpret_cast<float*>(
            require_scratch(operands, 7 * sizes.batch * sizes.units * sizeof(float)))) {
    const auto& attributes = *operands.step.kernel_as_Gru();
    is_reverse_ = attributes.reverse();
    resets_after_ = attributes.reset_after();
    const std::size_t units = sizes.units;
    for (std::size_t d = 0; d < sizes.directions; ++d) {
      const float* recurrent = operands.inputs[2]->as<float>() + d * kGates * units * units;
      weights_.emplace_back(operands.inputs[1]->as<float>() + d * kGates * units * sizes.inputs,
                            kGates * units, sizes.inputs);
      gates_.emplace_back(recurrent, 2 * units, units);
      candidates_.emplace_back(recurrent + 2 * units * units, units, units);
    }
  }

  void run() override {
    const std::size_t count = sizes_.directions * sizes_.state();
    if (initial_ == nullptr) {
      std::fill(hidden_, hidden_ + count, 0.0f);
    } else {
      std::copy(initial_->as<float>(), initial_->as<float>() + count, hidden_);
    }
    for (std::size_t d = 0; d < sizes_.directions; ++d) {
      for (std::size_t i = 0; i < sizes_.times; ++i) {
        const bool is_backward = is_reverse_ || d == 1;
        advance(is_backward ? sizes_.times - 1 - i : i, d);
      }
    }
  }

  const char* backend() const override { return "arenite"; }
  bool has_packed(std::size_t input) const override { return is_packed(input); }

 private:
  void advance(std::size_t time, std::size_t direction) const {
    const std::size_t units = sizes_.units;
    const std::size_t batch = sizes_.batch;
    float* products = scratch_;                        // batch, 3 * units
    float* gates = products + batch * kGates * units;  // batch, 2 * units
    float* candidates = gates + batch * 2 * units;     // batch, units
    float* reset = candidates + batch * units;         // batch, units
    float* hidden = hidden_ + direction * sizes_.state();
    const float* bias = bias_ + direction * kGates * units;
    const float* recurrent_bias = recurrent_bias_ + direction * kGates * units;
    weights_[direction].multiply(source_ + sizes_.source(time), sizes_.source_stride(), batch,
                                 products);
    gates_[direction].multiply(hidden, units, batch, gates);
    for (std::size_t b = 0; b < batch; ++b) {
      for (std::size_t row = 0; row < 2 * units; ++row) {
        float& gate = gates[b * 2 * units + row];
        gate = sigmoid(gate + products[b * kGates * units + row] + bias[row] + recurrent_bias[row]);
      }
      for (std::size_t j = 0; j < units; ++j) {
        reset[b * units + j] = gates[(b * 2 + 1) * units + j] * hidden[b * units + j];
      }
    }
    candidates_[direction].multiply(resets_after_ ? hidden : reset, units, batch, candidates);
    for (std::size_t b = 0; b < batch; ++b) {
      float* target = target_ + sizes_.target(time, direction) + b * sizes_.target_stride();
      for (std::size_t j = 0; j < units; ++j) {
        const float past = candidates[b * units + j] + recurrent_bias[2 * units + j];
        const float gate = resets_after_ ? gates[(b * 2 + 1) * units + j] : 1.0f;
        const float candidate =
            std::tanh(products[(b * kGates + 2) * units + j] + bias[2 * units + j] + gate * past);
        const float update = gates[b * 2 * units + j];
        float& state = hidden[b * units + j];
        state = (1.0f - update) * candidate + update * state;
        target[j] = state;
      }
    }
  }

  RecurrentSizes sizes_;
  const float* source_;
  const float* bias_;
  const float* recurrent_bias_;
  const TensorView* initial_;  // null: zeros
  float* target_;
  float* hidden_;
  float* scratch_;
  bool is_reverse_;
  bool resets_after_;
  std::vector<PackedWeights> weights_;  // by direction
  std::vector<PackedWeights> gates_;
  std::vector<PackedWeights> candidates_;
};

std::unique_ptr<Step> make_gru(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_Gru();
  require(operands, operands.inputs.size() == 6 && operands.outputs.size() == 2,
          "it has too few operands, or too many");
  for (std::size_t i = 0; i < 5; ++i) {
    require(operands, operands.inputs[i] != nullptr, "an input is left out");
  }
  const auto sizes = recurrent_sizes(operands, kGates, attributes.batch_major());
  for (const std::size_t position : {3u, 4u}) {
    require_numbers(operands, operands.inputs[position], sizes.directions * kGates * sizes.units);
  }
  if (operands.inputs[5] != nullptr) {
    require_numbers(operands, operands.inputs[5], sizes.directions * sizes.state());
  }
  require_numbers(operands, operands.outputs[1], sizes.directions * sizes.state());
  return std::make_unique<GruStep>(operands, sizes);
}

const Registration registered{program::Operator::Gru, make_gru};

}  // namespace

}  // namespace arenite
