// 1 for the first of the largest elements of each row of the last axis, 0 for all others.
#include <algorithm>

#include "registry.hpp"
#include "steps/rows.hpp"

namespace arenite {

namespace {

void hardmax(const float* source, float* target, std::size_t count) {
  // Found before anything is written: the target may be the source.
  const std::size_t first =
      static_cast<std::size_t>(std::max_element(source, source + count) - source);
  std::fill(target, target + count, 0.0f);
  target[first] = 1.0f;
}

std::unique_ptr<Step> make_hardmax(const Operands& operands) {
  require_arity(operands, 1, 1);
  const auto& source = *operands.inputs[0];
  const auto& target = *operands.outputs[0];
  require(operands, source.rank() > 0 && source.shape == target.shape, "input and output differ");
  require(operands, source.type == program::Type::float32 && target.type == program::Type::float32,
          "only float32 is supported");
  return make_rows<float>(operands, source.shape.back(), hardmax);
}

const Registration registered{program::Operator::Hardmax, make_hardmax};

}  // namespace

}  // namespace arenite
