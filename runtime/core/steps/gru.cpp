// GRU over a sequence, in one direction or both.
#include <algorithm>

#include "kernels/functions.hpp"
#include "registry.hpp"
#include "steps/recurrent.hpp"

namespace arenite {

namespace {

constexpr std::size_t kGates = 3;  // update, reset, hidden
// Units of which the products of all gates are in working memory at once: its loops over them are
// short, and fewer take up to an eighth more time.
constexpr std::size_t kUnitsAtOnce = 4 * kGemmPanel;

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
        resets_after_(operands.step.kernel_as_Gru()->reset_after()),
        is_reverse_(operands.step.kernel_as_Gru()->reverse()),
        scratch_(reinterpret_cast<float*>(
            require_scratch(operands, scratch_elements(sizes, resets_after_) * sizeof(float)))),
        weights_(packed_gates(operands.inputs[1]->as<float>(), sizes.directions * kGates,
                              sizes.units, sizes.inputs)),
        recurrent_(packed_gates(operands.inputs[2]->as<float>(), sizes.directions * kGates,
                                sizes.units, sizes.units)) {}

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

  std::size_t held_bytes() const override {
    return held_bytes_of(weights_) + held_bytes_of(recurrent_);
  }
  bool has_packed(std::size_t input) const override { return is_packed(input); }

 private:
  // Products with both weights, of the gates that are in use together. The reset gate that applies
  // to the state comes before the others, and the new states wait until all have read the old.
  static std::size_t scratch_elements(const RecurrentSizes& sizes, bool resets_after) {
    const std::size_t products = 2 * sizes.batch * std::min(sizes.units, kUnitsAtOnce);
    return resets_after ? kGates * products : 2 * products + sizes.state();
  }

  void advance(std::size_t time, std::size_t direction) const {
    const std::size_t units = sizes_.units;
    const std::size_t stride = sizes_.target_stride();
    float* hidden = hidden_ + direction * sizes_.state();
    float* target = target_ + sizes_.target(time, direction);
    const float* source = source_ + sizes_.source(time);
    if (!resets_after_) {
      in_tiles([&](std::size_t first, std::size_t count) {
        reset(first, count, direction, source, hidden, target);
      });
    }
    // The target holds the reset states until all new ones are made.
    float* made = resets_after_ ? target : scratch_;
    const std::size_t made_stride = resets_after_ ? stride : units;
    in_tiles([&](std::size_t first, std::size_t count) {
      if (resets_after_) {
        update(first, count, direction, source, hidden, hidden, units, made, made_stride);
      } else {
        update(first, count, direction, source, hidden, target, stride, made, made_stride);
      }
    });
    for (std::size_t b = 0; b < sizes_.batch; ++b) {
      const float* from = made + b * made_stride;
      std::copy(from, from + units, hidden + b * units);
      std::copy(hidden + b * units, hidden + (b + 1) * units, target + b * stride);
    }
  }

  // Calls work(first, count) for the units that are made at once.
  template <typename Work>
  void in_tiles(const Work& work) const {
    for (std::size_t first = 0; first < sizes_.units; first += kUnitsAtOnce) {
      work(first, std::min(kUnitsAtOnce, sizes_.units - first));
    }
  }

  // Products with both weights of the units made at once, a row for each sequence.
  struct Products {
    float* x;
    float* h;
  };

  // Vectors of the state are `stride` apart.
  Products products(std::size_t index, std::size_t place, std::size_t first, std::size_t count,
                    std::size_t direction, const float* source, const float* state,
                    std::size_t stride) const {
    float* x = scratch_ + (resets_after_ ? 0 : sizes_.state()) + 2 * place * sizes_.batch * count;
    float* h = x + sizes_.batch * count;
    const std::size_t gate = direction * kGates + index;
    weights_[gate].multiply(source, sizes_.source_stride(), sizes_.batch, first, count, x);
    recurrent_[gate].multiply(state, stride, sizes_.batch, first, count, h);
    return {x, h};
  }

  // Returns the values of a gate, in place of its products.
  const float* gate(std::size_t index, std::size_t place, std::size_t first, std::size_t count,
                    std::size_t direction, const float* source, const float* hidden) const {
    const auto [x, h] =
        products(index, place, first, count, direction, source, hidden, sizes_.units);
    const std::size_t row = (direction * kGates + index) * sizes_.units + first;
    for (std::size_t b = 0; b < sizes_.batch; ++b) {
      for (std::size_t j = 0; j < count; ++j) {
        float& value = h[b * count + j];
        value = sigmoid(value + x[b * count + j] + bias_[row + j] + recurrent_bias_[row + j]);
      }
    }
    return h;
  }

  void reset(std::size_t first, std::size_t count, std::size_t direction, const float* source,
             const float* hidden, float* target) const {
    const float* reset = gate(1, 0, first, count, direction, source, hidden);
    for (std::size_t b = 0; b < sizes_.batch; ++b) {
      for (std::size_t j = 0; j < count; ++j) {
        target[b * sizes_.target_stride() + first + j] =
            reset[b * count + j] * hidden[b * sizes_.units + first + j];
      }
    }
  }

  // Makes new states; `past` is what the weights of the candidate are multiplied with.
  void update(std::size_t first, std::size_t count, std::size_t direction, const float* source,
              const float* hidden, const float* past, std::size_t past_stride, float* made,
              std::size_t made_stride) const {
    const std::size_t units = sizes_.units;
    const float* update = gate(0, 0, first, count, direction, source, hidden);
    const float* reset =
        resets_after_ ? gate(1, 2, first, count, direction, source, hidden) : nullptr;
    const auto [x, h] = products(2, 1, first, count, direction, source, past, past_stride);
    const std::size_t row = (direction * kGates + 2) * units + first;
    for (std::size_t b = 0; b < sizes_.batch; ++b) {
      for (std::size_t j = 0; j < count; ++j) {
        const std::size_t i = b * count + j;
        const float from_past = h[i] + recurrent_bias_[row + j];
        const float candidate = std::tanh(x[i] + bias_[row + j] +
                                          (reset == nullptr ? from_past : reset[i] * from_past));
        made[b * made_stride + first + j] =
            (1.0f - update[i]) * candidate + update[i] * hidden[b * units + first + j];
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
  bool resets_after_;
  bool is_reverse_;
  float* scratch_;
  std::vector<PackedWeights> weights_;  // by direction and gate
  std::vector<PackedWeights> recurrent_;
};

std::unique_ptr<Step> make_gru(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_Gru();
  require(operands, operands.inputs.size() == 6 && operands.outputs.size() == 2,
          "it has too few or too many operands");
  for (std::size_t i = 0; i < 5; ++i) {
    require(operands, operands.inputs[i] != nullptr, "a required input is missing");
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
