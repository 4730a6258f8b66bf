#include "steps/layer_norm.hpp"

#include <cmath>

#include "steps/rows.hpp"

namespace arenite {

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
            "it computes in numbers alone");
  }
  for (const auto* view : {scale, shift}) {
    require(operands, view == nullptr || view->num_elements() == length,
            "its scale or shift does not fit");
  }
  const float* factors = scale == nullptr ? nullptr : scale->as<float>();
  const float* terms = shift == nullptr ? nullptr : shift->as<float>();
  const float epsilon = attributes.epsilon();
  return make_rows<float>(operands, length, [=](const float* from, float* to, std::size_t count) {
    float sum = 0;
    for (std::size_t i = 0; i < count; ++i) {
      sum += from[i];
    }
    const float mean = sum / static_cast<float>(count);
    float squares = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const float distance = from[i] - mean;
      squares += distance * distance;
    }
    const float factor = 1.0f / std::sqrt(squares / static_cast<float>(count) + epsilon);
    for (std::size_t i = 0; i < count; ++i) {
      to[i] = (from[i] - mean) * factor * (factors == nullptr ? 1.0f : factors[i]) +
              (terms == nullptr ? 0.0f : terms[i]);
    }
  });
}

}  // namespace arenite
