// A factor and a term for each channel: a batch normalisation that no other step absorbed.
#include <algorithm>

#include "registry.hpp"
#include "steps/rows.hpp"

namespace arenite {

namespace {

std::unique_ptr<Step> make_multiply_add(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_MultiplyAdd();
  require_arity(operands, 3, 3);
  const auto& source = *operands.inputs[0];
  require(operands, source.rank() > 0 && source.shape == operands.outputs[0]->shape,
          "input and output differ");
  for (const auto* view :
       {operands.inputs[0], operands.inputs[1], operands.inputs[2], operands.outputs[0]}) {
    require(operands, view->type == program::Type::float32, "only float32 is supported");
  }
  for (const std::size_t position : {1u, 2u}) {
    require(operands, operands.inputs[position]->num_elements() == source.shape.back(),
            "its factors or terms do not fit");
  }
  const float* factors = operands.inputs[1]->as<float>();
  const float* terms = operands.inputs[2]->as<float>();
  const float min = attributes.min();
  const float max = attributes.max();
  return make_rows<float>(operands, source.shape.back(),
                          [=](const float* from, float* to, std::size_t count) {
                            for (std::size_t i = 0; i < count; ++i) {
                              const float value = from[i] * factors[i] + terms[i];
                              to[i] = std::min(std::max(value, min), max);
                            }
                          });
}

const Registration registered{program::Operator::MultiplyAdd, make_multiply_add};

}  // namespace

}  // namespace arenite
