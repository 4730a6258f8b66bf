// Layer normalisation: mean 0 and deviation 1 over the last axes, then scale and shift.
#include <cmath>

#include "kernels/sums.hpp"
#include "registry.hpp"
#include "steps/rows.hpp"

namespace arenite {

namespace {

std::unique_ptr<Step> make_layer_norm(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_LayerNorm();
  require_arity(operands, 1, 3);
  const auto& source = *operands.inputs[0];
  const auto* scale = optional_input(operands, 1);
  const auto* shift = optional_input(operands, 2);
  require(operands, source.shape == operands.outputs[0]->shape, "input and output differ");
  require(operands, attributes.num_axes() > 0 && attributes.num_axes() <= source.rank(),
          "it has more axes than its input");
  std::size_t length = 1;
  for (std::size_t axis = source.rank() - attributes.num_axes(); axis < source.rank(); ++axis) {
    length *= source.shape[axis];
  }
  for (const auto* view : {&source, operands.outputs[0], scale, shift}) {
    require(operands, view == nullptr || view->type == program::Type::float32,
            "only float32 is supported");
  }
  for (const auto* view : {scale, shift}) {
    require(operands, view == nullptr || view->num_elements() == length,
            "its scale or shift does not fit");
  }
  const float* factors = scale == nullptr ? nullptr : scale->as<float>();
  const float* terms = shift == nullptr ? nullptr : shift->as<float>();
  const float epsilon = attributes.epsilon();
  return make_rows<float>(operands, length, [=](const float* from, float* to, std::size_t count) {
    const auto size = static_cast<float>(count);
    const float mean = sum_of(count, [=](std::size_t i) { return from[i]; }) / size;
    const float squares = sum_of(count, [=](std::size_t i) {
      const float distance = from[i] - mean;
      return distance * distance;
    });
    const float factor = 1.0f / std::sqrt(squares / size + epsilon);
    for (std::size_t i = 0; i < count; ++i) { to[i] = (from[i] - mean) * factor; }
    if (factors != nullptr) {
      for (std::size_t i = 0; i < count; ++i) { to[i] *= factors[i]; }
    }
    if (terms != nullptr) {
      for (std::size_t i = 0; i < count; ++i) { to[i] += terms[i]; }
    }
  });
}

const Registration registered{program::Operator::LayerNorm, make_layer_norm};

}  // namespace

}  // namespace arenite
