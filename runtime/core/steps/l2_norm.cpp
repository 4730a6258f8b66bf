// Scales the last axis to length 1.
#include <algorithm>
#include <cmath>

#include "kernels/sums.hpp"
#include "registry.hpp"
#include "steps/rows.hpp"

namespace arenite {

namespace {

std::unique_ptr<Step> make_l2_norm(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_L2Norm();
  require_arity(operands, 1, 1);
  const auto& source = *operands.inputs[0];
  const auto& target = *operands.outputs[0];
  require(operands, source.rank() > 0 && source.shape == target.shape, "input and output differ");
  require(operands, source.type == program::Type::float32 && target.type == program::Type::float32,
          "only float32 is supported");
  const float epsilon = attributes.epsilon();
  return make_rows<float>(
      operands, source.shape.back(), [=](const float* from, float* to, std::size_t count) {
        const float squares = sum_of(count, [=](std::size_t i) { return from[i] * from[i]; });
        const float length = std::max(std::sqrt(squares), epsilon);
        const float factor = length > 0 ? 1.0f / length : 0.0f;
        for (std::size_t i = 0; i < count; ++i) { to[i] = from[i] * factor; }
      });
}

const Registration registered{program::Operator::L2Norm, make_l2_norm};

}  // namespace

}  // namespace arenite
