// LSTM over a sequence, in one direction or both.
#include "registry.hpp"
#include "steps/recurrent.hpp"

namespace arenite {

namespace {

constexpr std::size_t kGates = 4;  // input, forget, cell, output

class LstmStep final : public Step {
 public:
  LstmStep(const Operands& operands, const RecurrentSizes& sizes)
      : step_(operands.step),
        sizes_(sizes),
        sums_(operands, sizes, kGates, false),
        lengths_(operands, 6, sizes),
        target_(operands.outputs[0]->as<float>()) {
    sums_.place(require_scratch_of<float>(operands, sums_.elements()));
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
    resets_state_ = true;
  }

  void check() const override { lengths_.check(step_); }

  void run() override {
    if (resets_state_) {
      begin_states(sizes_, initial_hidden_, hidden_);
      begin_states(sizes_, initial_cell_, cell_);
    }
    each_time_and_direction(
        sizes_, sums_, lengths_, is_reverse_, target_,
        [&](std::size_t time, std::size_t d, float* sums) { advance(time, d, sums); });
  }

 private:
  void advance(std::size_t time, std::size_t direction, float* sums) const {
    float* hidden = hidden_ + direction * sizes_.state();
    float* cell = cell_ + direction * sizes_.state();
    float* target = target_ + sizes_.target(time, direction);
    sums_.each_tiles(time, direction, sums, [&](const GateSums::Tiles& tiles) {
      sums_.multiply_state(hidden, kGates, direction, tiles);
      for (std::size_t b = 0; b < sizes_.batch; ++b) {
        if (!lengths_.reaches(time, b)) { continue; }
        make_lstm_cells(tiles.sums + b * sums_.vector_size(), tiles.units, clip_,
                        cell + b * sizes_.units + tiles.unit,
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
  float* target_;
  float clip_;
  bool is_reverse_;
  bool resets_state_ = false;
  const TensorView* initial_hidden_ = nullptr;  // null: zeros
  const TensorView* initial_cell_ = nullptr;
  float* hidden_;
  float* cell_;
};

std::unique_ptr<Step> make_lstm(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_Lstm();
  const bool keeps_state = attributes.keeps_state();
  const std::size_t inputs = operands.inputs.size();
  require(operands,
          (inputs == 6 || inputs == 7) && operands.outputs.size() == (keeps_state ? 1 : 3),
          "it has too few or too many operands");
  for (std::size_t i = 0; i < 4; ++i) {
    require(operands, operands.inputs[i] != nullptr, "a required input is missing");
  }
  if (operands.inputs[0]->type == program::Type::int8) { return nullptr; }
  const auto sizes = recurrent_sizes(operands, kGates, attributes.batch_major());
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
