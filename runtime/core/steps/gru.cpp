// GRU over a sequence, in one direction or both.
#include <algorithm>

#include "registry.hpp"
#include "steps/recurrent.hpp"

namespace arenite {

namespace {

constexpr std::size_t kGates = 3;  // update, reset, hidden

class GruStep final : public Step {
 public:
  GruStep(const Operands& operands, const RecurrentSizes& sizes)
      : step_(operands.step),
        sizes_(sizes),
        resets_after_(operands.step.kernel_as_Gru()->reset_after()),
        sums_(operands, sizes, kGates, !resets_after_),
        lengths_(operands, 6, sizes),
        is_reverse_(operands.step.kernel_as_Gru()->reverse()),
        recurrent_bias_(operands.inputs[4]->as<float>()),
        initial_(operands.inputs[5]),
        target_(operands.outputs[0]->as<float>()),
        hidden_(operands.outputs[1]->as<float>()) {
    // Behind the sums: reset states, or candidates.
    const std::size_t beside =
        sizes.batch * (resets_after_ ? sums_.tiles_at_once() * kGateUnits : sizes.units);
    const std::size_t elements = sums_.elements();
    beside_ = require_scratch_of<float>(operands, elements + beside);
    sums_.place(beside_);
    beside_ += elements;
  }

  void check() const override { lengths_.check(step_); }

  void run() override {
    begin_states(sizes_, initial_, hidden_);
    each_time_and_direction(
        sizes_, sums_, lengths_, is_reverse_, target_,
        [&](std::size_t time, std::size_t d, float* sums) { advance(time, d, sums); });
  }

 private:
  void advance(std::size_t time, std::size_t direction, float* sums) const {
    float* hidden = hidden_ + direction * sizes_.state();
    float* target = target_ + sizes_.target(time, direction);
    sums_.each_tiles(time, direction, sums, [&](const GateSums::Tiles& tiles) {
      if (resets_after_) {
        reset_after(tiles, direction, hidden, target);
      } else {
        reset_before(tiles, direction, hidden, target);
      }
    });
    // Only now, as all units read the state from before.
    lengths_.keep_states(time, target, hidden);
  }

  // Sums of the hidden gate from the inputs become candidates; those from the state begin with the
  // bias.
  void reset_after(const GateSums::Tiles& tiles, std::size_t direction, const float* hidden,
                   float* target) const {
    const std::size_t stride = sums_.tiles_at_once() * kGateUnits;  // of candidates
    const std::size_t padded = gate_tiles(sizes_.units) * kGateUnits;
    const float* bias = recurrent_bias_ + direction * padded + tiles.unit;
    for (std::size_t b = 0; b < sizes_.batch; ++b) {
      for (std::size_t tile = 0; tile < tiles.count; ++tile) {
        const std::size_t place = b * sums_.vector_size() + (tile * kGates + 2) * kGateUnits;
        float* gate = tiles.sums + place;
        std::copy_n(gate, kGateUnits, beside_ + b * stride + tile * kGateUnits);
        std::copy_n(bias + tile * kGateUnits, kGateUnits, gate);
      }
    }
    sums_.multiply_state(hidden, kGates, direction, tiles);
    for (std::size_t b = 0; b < sizes_.batch; ++b) {
      make_gru_states(tiles.sums + b * sums_.vector_size(), beside_ + b * stride, tiles.units,
                      hidden + b * sizes_.units + tiles.unit,
                      target + b * sizes_.target_stride() + tiles.unit);
    }
  }

  // All tiles at once, as the last gate reads all reset states.
  void reset_before(const GateSums::Tiles& tiles, std::size_t direction, const float* hidden,
                    float* target) const {
    const std::size_t units = sizes_.units;
    sums_.multiply_state(hidden, 2, direction, tiles);
    for (std::size_t b = 0; b < sizes_.batch; ++b) {
      reset_gru_states(tiles.sums + b * sums_.vector_size(), units, hidden + b * units,
                       beside_ + b * units);
    }
    sums_.multiply_state(beside_, 1, direction, tiles);
    for (std::size_t b = 0; b < sizes_.batch; ++b) {
      update_gru_states(tiles.sums + b * sums_.vector_size(), units, hidden + b * units,
                        target + b * sizes_.target_stride());
    }
  }

  const program::Step& step_;
  RecurrentSizes sizes_;
  bool resets_after_;
  GateSums sums_;
  SequenceLengths lengths_;
  bool is_reverse_;
  const float* recurrent_bias_;  // of the hidden gate, after which the reset applies
  const TensorView* initial_;    // null: zeros
  float* target_;
  float* hidden_;
  float* beside_;
};

std::unique_ptr<Step> make_gru(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_Gru();
  const std::size_t inputs = operands.inputs.size();
  require(operands, (inputs == 6 || inputs == 7) && operands.outputs.size() == 2,
          "it has too few or too many operands");
  for (std::size_t i = 0; i < 5; ++i) {
    require(operands, operands.inputs[i] != nullptr, "a required input is missing");
  }
  const auto sizes = recurrent_sizes(operands, kGates, attributes.batch_major());
  require_numbers(operands, operands.inputs[4],
                  sizes.directions * gate_tiles(sizes.units) * kGateUnits);
  if (operands.inputs[5] != nullptr) {
    require_numbers(operands, operands.inputs[5], sizes.directions * sizes.state());
  }
  require_numbers(operands, operands.outputs[1], sizes.directions * sizes.state());
  return std::make_unique<GruStep>(operands, sizes);
}

const Registration registered{program::Operator::Gru, make_gru};

}  // namespace

}  // namespace arenite
