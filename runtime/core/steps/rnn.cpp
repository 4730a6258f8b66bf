// Plain recurrent layer over a sequence, in one direction or both.
#include "registry.hpp"
#include "steps/recurrent.hpp"

namespace arenite {

namespace {

class RnnStep final : public Step {
 public:
  RnnStep(const Operands& operands, const RecurrentSizes& sizes)
      : step_(operands.step),
        sizes_(sizes),
        sums_(operands, sizes, 1, false),
        lengths_(operands, 5, sizes),
        is_reverse_(operands.step.kernel_as_Rnn()->reverse()),
        rectifies_(operands.step.kernel_as_Rnn()->rectifies()),
        initial_(operands.inputs[4]),
        target_(operands.outputs[0]->as<float>()),
        hidden_(operands.outputs[1]->as<float>()) {
    sums_.place(require_scratch_of<float>(operands, sums_.elements()));
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
      sums_.multiply_state(hidden, 1, direction, tiles);
      for (std::size_t b = 0; b < sizes_.batch; ++b) {
        make_rnn_states(tiles.sums + b * sums_.vector_size(), tiles.units, rectifies_,
                        target + b * sizes_.target_stride() + tiles.unit);
      }
    });
    // Only now, as all units read the state from before.
    lengths_.keep_states(time, target, hidden);
  }

  const program::Step& step_;
  RecurrentSizes sizes_;
  GateSums sums_;
  SequenceLengths lengths_;
  bool is_reverse_;
  bool rectifies_;
  const TensorView* initial_;  // null: zeros
  float* target_;
  float* hidden_;
};

std::unique_ptr<Step> make_rnn(const Operands& operands) {
  const std::size_t inputs = operands.inputs.size();
  require(operands, (inputs == 5 || inputs == 6) && operands.outputs.size() == 2,
          "it has too few or too many operands");
  for (std::size_t i = 0; i < 4; ++i) {
    require(operands, operands.inputs[i] != nullptr, "a required input is missing");
  }
  const auto sizes = recurrent_sizes(operands, 1, false);
  if (operands.inputs[4] != nullptr) {
    require_numbers(operands, operands.inputs[4], sizes.directions * sizes.state());
  }
  require_numbers(operands, operands.outputs[1], sizes.directions * sizes.state());
  return std::make_unique<RnnStep>(operands, sizes);
}

const Registration registered{program::Operator::Rnn, make_rnn};

}  // namespace

}  // namespace arenite
