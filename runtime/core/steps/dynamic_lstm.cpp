// LSTM whose input and hidden states are integers of 8 bits, quantised in the run.
#include <algorithm>
#include <limits>

#include "kernels/convolution/convolve_int8.hpp"
#include "kernels/dynamic_quantise.hpp"
#include "registry.hpp"
#include "steps/recurrent.hpp"

namespace arenite {

namespace {

constexpr std::size_t kGates = 4;  // input, forget, cell, output
enum Input : std::size_t {
  kX,
  kWeights,
  kRecurrent,
  kBias,
  kHidden,
  kCell,
  kScale,
  kZeroPoint,
  kWeightScales,
  kRecurrentScales,
  kWeightZeros,
  kRecurrentZeros,
  kNumInputs
};

// Products of vectors of integers with the weights of all gates, as floats.
class GateProductsOfIntegers {
 public:
  GateProductsOfIntegers(const Operands& operands, std::size_t depth, std::size_t sums,
                         Input weights, Input scales, Input zeros)
      : depth_(depth),
        sums_(sums),
        filter_bytes_(packed_int8_filter_size(1, sums, depth)),
        filter_(operands.inputs[weights]->as<std::int8_t>()),
        scales_(operands.inputs[scales]->as<float>()),
        zeros_(operands.inputs[zeros] == nullptr ? nullptr
                                                 : operands.inputs[zeros]->as<std::int32_t>()),
        threads_(operands.threads) {}

  // Writes the products and what is added to each of the sums, if anything is.
  void multiply(std::size_t direction, const std::uint8_t* vectors, std::size_t count,
                DynamicScale of, const float* bias, float* to) const {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    const std::size_t first = direction * sums_;
    const Int8Sums sums{{{1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}},
                        1,
                        filter_ + direction * filter_bytes_,
                        of.zero_point,
                        zeros_ == nullptr ? nullptr : zeros_ + first,
                        of.scale,
                        scales_ + first,
                        bias == nullptr ? nullptr : bias + first,
                        -kInfinity,
                        kInfinity};
    convolve(sums, Image<const std::uint8_t>{vectors, 1, count, depth_, depth_, count * depth_},
             Image<float>{to, 1, count, sums_, sums_, count * sums_}, {0, 1}, threads_);
  }

 private:
  std::size_t depth_;
  std::size_t sums_;
  std::size_t filter_bytes_;
  const std::int8_t* filter_;
  const float* scales_;
  const std::int32_t* zeros_;
  pthreadpool_t threads_;
};

class DynamicLstmStep final : public Step {
 public:
  DynamicLstmStep(const Operands& operands, const RecurrentSizes& sizes)
      : sizes_(sizes),
        vector_(gate_tiles(sizes.units) * kGates * kGateUnits),
        times_(times_at_once(sizes)),
        is_reverse_(operands.step.kernel_as_DynamicLstm()->reverse()),
        source_(operands.inputs[kX]->as<std::uint8_t>()),
        scale_(operands.inputs[kScale]->as<float>()),
        zero_point_(operands.inputs[kZeroPoint]->as<std::uint8_t>()),
        bias_(operands.inputs[kBias]->as<float>()),
        of_inputs_(operands, sizes.inputs, vector_, kWeights, kWeightScales, kWeightZeros),
        of_states_(operands, sizes.units, vector_, kRecurrent, kRecurrentScales, kRecurrentZeros),
        initial_hidden_(operands.inputs[kHidden]),
        initial_cell_(operands.inputs[kCell]),
        target_(operands.outputs[0]->as<float>()),
        hidden_(operands.outputs[1]->as<float>()),
        cell_(operands.outputs[2]->as<float>()),
        threads_(operands.threads) {
    const std::size_t floats = (times_ + 1) * sizes.batch * vector_;
    sums_ =
        reinterpret_cast<float*>(require_scratch(operands, floats * sizeof(float) + sizes.state()));
    products_ = sums_ + times_ * sizes.batch * vector_;
    integers_ = reinterpret_cast<std::uint8_t*>(sums_ + floats);
  }

  void run() override {
    begin_states(sizes_, initial_hidden_, hidden_);
    begin_states(sizes_, initial_cell_, cell_);
    for (std::size_t direction = 0; direction < sizes_.directions; ++direction) {
      each_group_of_times(
          sizes_.times, times_, is_reverse_ || direction == 1,
          [&](std::size_t first, std::size_t count) {
            of_inputs_.multiply(direction, source_ + sizes_.source(first), count * sizes_.batch,
                                {*scale_, *zero_point_}, bias_, sums_);
          },
          [&](std::size_t time, std::size_t slot) {
            advance(time, direction, sums_ + slot * sizes_.batch * vector_);
          });
    }
  }

 private:
  void advance(std::size_t time, std::size_t direction, float* sums) const {
    float* hidden = hidden_ + direction * sizes_.state();
    float* cell = cell_ + direction * sizes_.state();
    float* target = target_ + sizes_.target(time, direction);
    const DynamicScale scale = quantise_dynamically(hidden, sizes_.state(), integers_, threads_);
    of_states_.multiply(direction, integers_, sizes_.batch, scale, nullptr, products_);
    for (std::size_t i = 0; i < sizes_.batch * vector_; ++i) { sums[i] += products_[i]; }
    for (std::size_t b = 0; b < sizes_.batch; ++b) {
      make_lstm_cells(sums + b * vector_, sizes_.units, std::numeric_limits<float>::infinity(),
                      cell + b * sizes_.units, target + b * sizes_.units);
    }
    std::copy_n(target, sizes_.state(), hidden);
  }

  RecurrentSizes sizes_;
  std::size_t vector_;  // sums of all gates of a direction
  std::size_t times_;   // of which working memory holds sums
  bool is_reverse_;
  const std::uint8_t* source_;
  const float* scale_;
  const std::uint8_t* zero_point_;
  const float* bias_;
  GateProductsOfIntegers of_inputs_;
  GateProductsOfIntegers of_states_;
  const TensorView* initial_hidden_;  // null: zeros
  const TensorView* initial_cell_;
  float* target_;
  float* hidden_;
  float* cell_;
  pthreadpool_t threads_;
  float* sums_;
  float* products_;
  std::uint8_t* integers_;  // the hidden state
};

std::unique_ptr<Step> make_dynamic_lstm(const Operands& operands) {
  using program::Type;
  require(operands, operands.inputs.size() == kNumInputs && operands.outputs.size() == 3,
          "it has too few or too many operands");
  for (const std::size_t i :
       {kX, kWeights, kRecurrent, kBias, kScale, kZeroPoint, kWeightScales, kRecurrentScales}) {
    require(operands, operands.inputs[i] != nullptr, "a required input is missing");
  }
  const auto& x = *operands.inputs[kX];
  const auto& y = *operands.outputs[0];
  require(operands, x.rank() == 3 && y.rank() == 4, "its input or output has another rank");
  require(operands, y.size > 0 && x.size > 0, "its input or output is empty");
  const RecurrentSizes sizes{x.shape[0], x.shape[1], x.shape[2], y.shape[3], y.shape[1], false};
  require(operands, sizes.directions == 1 || sizes.directions == 2,
          "only one or two directions are supported");
  require_elements(operands, &x, Type::uint8, sizes.times * sizes.batch * sizes.inputs);
  require_numbers(operands, &y, sizes.times * sizes.directions * sizes.state());
  const std::size_t states = sizes.directions * sizes.state();
  const std::size_t rows = gate_tiles(sizes.units) * kGates * kGateUnits;
  const auto require_weights = [&](Input weights, Input scales, Input zeros, std::size_t depth) {
    require_elements(operands, operands.inputs[weights], Type::int8,
                     packed_int8_filter_size(sizes.directions, rows, depth));
    require_numbers(operands, operands.inputs[scales], sizes.directions * rows);
    if (operands.inputs[zeros] != nullptr) {
      require_elements(operands, operands.inputs[zeros], Type::int32, sizes.directions * rows);
    }
  };
  require_weights(kWeights, kWeightScales, kWeightZeros, sizes.inputs);
  require_weights(kRecurrent, kRecurrentScales, kRecurrentZeros, sizes.units);
  require_numbers(operands, operands.inputs[kBias], sizes.directions * rows);
  require_numbers(operands, operands.inputs[kScale], 1);
  require_elements(operands, operands.inputs[kZeroPoint], Type::uint8, 1);
  for (std::size_t i = 1; i <= 2; ++i) {
    require_numbers(operands, operands.outputs[i], states);
    const auto* initial = operands.inputs[kHidden + i - 1];
    if (initial != nullptr) { require_numbers(operands, initial, states); }
  }
  return std::make_unique<DynamicLstmStep>(operands, sizes);
}

const Registration registered{program::Operator::DynamicLstm, make_dynamic_lstm};

}  // namespace

}  // namespace arenite
