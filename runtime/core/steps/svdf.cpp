// SVDF: a filter over features and then over their past, of low rank.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/quantised.hpp"
#include "kernels/wrapping.hpp"
#include "operand_checks.hpp"
#include "registry.hpp"

namespace arenite {

namespace {

using program::Type;

struct Sizes {
  std::size_t batch;
  std::size_t inputs;
  std::size_t filters;
  std::size_t memory;  // time steps that are kept of each filter
  std::size_t rank;    // filters that make up one output
};

// Integers as numbers are multiplied by scales and rounded, each half away from zero: first
// into the state, then into the output.
struct Factors {
  double feature = 1.0;
  double time = 1.0;
  std::int32_t input_zero_point = 0;
  std::int32_t output_zero_point = 0;
};

template <typename Element, typename Time, typename State, typename Sum>
class SvdfStep final : public Step {
 public:
  SvdfStep(const Operands& operands, const Sizes& sizes, const Factors& factors)
      : sizes_(sizes),
        factors_(factors),
        source_(operands.inputs[0]->as<Element>()),
        features_(operands.inputs[1]->as<Element>()),
        times_(operands.inputs[2]->as<Time>()),
        bias_(operands.inputs[3] == nullptr ? nullptr : operands.inputs[3]->as<Sum>()),
        state_(operands.inputs[4]->as<State>()),
        target_(operands.outputs[0]->as<Element>()),
        min_(operands.step.kernel_as_Svdf()->min()),
        max_(operands.step.kernel_as_Svdf()->max()) {
    if constexpr (!kIsFloat) {
      const float scale = operands.outputs[0]->scales[0];
      const auto integer = [&](float value, double unlimited) {
        return std::isinf(value) ? unlimited
                                 : std::round(value / scale) + factors.output_zero_point;
      };
      min_ = integer(static_cast<float>(min_), -std::numeric_limits<double>::infinity());
      max_ = integer(static_cast<float>(max_), std::numeric_limits<double>::infinity());
    }
  }

  void run() override {
    for (std::size_t b = 0; b < sizes_.batch; ++b) {
      for (std::size_t filter = 0; filter < sizes_.filters; ++filter) { update_state(b, filter); }
      for (std::size_t unit = 0; unit < sizes_.filters / sizes_.rank; ++unit) {
        compute_output(b, unit);
      }
    }
  }

 private:
  static constexpr bool kIsFloat = std::is_same_v<Element, float>;

  State* past(std::size_t b, std::size_t filter) const {
    return state_ + (b * sizes_.filters + filter) * sizes_.memory;
  }

  void update_state(std::size_t b, std::size_t filter) const {
    State* memory = past(b, filter);
    std::copy(memory + 1, memory + sizes_.memory, memory);
    const Element* source = source_ + b * sizes_.inputs;
    const Element* weights = features_ + filter * sizes_.inputs;
    Sum total = 0;
    for (std::size_t i = 0; i < sizes_.inputs; ++i) {
      total =
          sum(total, static_cast<Sum>(weights[i]) * (static_cast<Sum>(source[i]) -
                                                     static_cast<Sum>(factors_.input_zero_point)));
    }
    if constexpr (kIsFloat) {
      memory[sizes_.memory - 1] = total;
    } else {
      memory[sizes_.memory - 1] = saturate<State>(std::round(total * factors_.feature));
    }
  }

  void compute_output(std::size_t b, std::size_t unit) const {
    Sum total = bias_ == nullptr ? Sum{0} : bias_[unit];
    for (std::size_t filter = unit * sizes_.rank; filter < (unit + 1) * sizes_.rank; ++filter) {
      const State* memory = past(b, filter);
      const Time* weights = times_ + filter * sizes_.memory;
      for (std::size_t i = 0; i < sizes_.memory; ++i) {
        total = sum(total, static_cast<Sum>(memory[i]) * static_cast<Sum>(weights[i]));
      }
    }
    Element& target = target_[b * (sizes_.filters / sizes_.rank) + unit];
    if constexpr (kIsFloat) {
      target = std::min(std::max(total, static_cast<float>(min_)), static_cast<float>(max_));
    } else {
      const double value = std::round(total * factors_.time) + factors_.output_zero_point;
      target = saturate<Element>(std::min(std::max(value, min_), max_));
    }
  }

  Sizes sizes_;
  Factors factors_;
  const Element* source_;
  const Element* features_;
  const Time* times_;
  const Sum* bias_;
  State* state_;
  Element* target_;
  double min_;
  double max_;
};

Sizes checked_sizes(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_Svdf();
  const auto& x = *operands.inputs[0];
  const auto& features = *operands.inputs[1];
  const auto& times = *operands.inputs[2];
  require(operands, x.rank() == 2 && features.rank() == 2 && times.rank() == 2,
          "its input or weights have another rank");
  const Sizes sizes{x.shape[0], x.shape[1], features.shape[0], times.shape[1], attributes.rank()};
  require(
      operands,
      sizes.rank > 0 && sizes.filters > 0 && sizes.filters % sizes.rank == 0 && sizes.memory > 0,
      "the number of filters must be a multiple of the rank");
  require(operands, features.shape[1] == sizes.inputs && times.shape[0] == sizes.filters,
          "its weights do not fit");
  const std::size_t units = sizes.filters / sizes.rank;
  require(operands, operands.inputs[3] == nullptr || operands.inputs[3]->num_elements() == units,
          "its bias does not fit");
  // Divided, not multiplied: the batch is any number where there are no inputs.
  const TensorView& state = *operands.inputs[4];
  const std::size_t past = sizes.filters * sizes.memory;
  require(operands,
          state.num_elements() % past == 0 && state.num_elements() / past == sizes.batch &&
              !state.is_constant,
          "its state does not fit");
  require(operands, operands.outputs[0]->num_elements() == sizes.batch * units,
          "its output does not fit");
  return sizes;
}

std::unique_ptr<Step> make_svdf(const Operands& operands) {
  require(operands, operands.inputs.size() == 5 && operands.outputs.size() == 1,
          "it has too few or too many operands");
  for (const std::size_t position : {0u, 1u, 2u, 4u}) {
    require(operands, operands.inputs[position] != nullptr, "a required input is missing");
  }
  const Sizes sizes = checked_sizes(operands);
  const auto& x = *operands.inputs[0];
  const auto& features = *operands.inputs[1];
  const auto& times = *operands.inputs[2];
  const auto& state = *operands.inputs[4];
  const auto& y = *operands.outputs[0];
  const auto is = [](const TensorView* view, Type type) {
    return view == nullptr || view->type == type;
  };
  if (x.type == Type::float32) {
    const bool fits = is(&features, Type::float32) && is(&times, Type::float32) &&
                      is(operands.inputs[3], Type::float32) && is(&state, Type::float32) &&
                      is(&y, Type::float32);
    return fits ? std::make_unique<SvdfStep<float, float, float, float>>(operands, sizes, Factors{})
                : nullptr;
  }
  const bool fits = is(&x, Type::int8) && is(&features, Type::int8) &&
                    is(operands.inputs[3], Type::int32) && is(&y, Type::int8);
  if (!fits) { return nullptr; }
  for (const auto* view : {&x, &features, &times, &state, &y}) {
    require(operands, view->scales.size() == 1, "an operand needs exactly one scale");
  }
  const Factors factors{static_cast<double>(x.scales[0]) * features.scales[0] / state.scales[0],
                        static_cast<double>(state.scales[0]) * times.scales[0] / y.scales[0],
                        x.zero_point, y.zero_point};
  if (is(&times, Type::int16) && is(&state, Type::int16)) {
    return std::make_unique<SvdfStep<std::int8_t, std::int16_t, std::int16_t, std::int32_t>>(
        operands, sizes, factors);
  }
  if (is(&times, Type::int8) && is(&state, Type::int8)) {
    return std::make_unique<SvdfStep<std::int8_t, std::int8_t, std::int8_t, std::int32_t>>(
        operands, sizes, factors);
  }
  return nullptr;
}

const Registration registered{program::Operator::Svdf, make_svdf};

}  // namespace

}  // namespace arenite
