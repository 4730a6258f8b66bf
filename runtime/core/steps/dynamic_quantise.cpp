// Quantisation to 8 bits whose scale and zero point are those of the elements of each run.
#include "kernels/dynamic_quantise.hpp"

#include "operand_checks.hpp"
#include "registry.hpp"

namespace arenite {

namespace {

std::unique_ptr<Step> make_dynamic_quantise(const Operands& operands) {
  using program::Type;
  require_arity(operands, 1, 1, 3);
  require(operands, operands.outputs.size() == 3, "it must have 3 outputs");
  const auto& source = *operands.inputs[0];
  const auto& result = *operands.outputs[0];
  const auto& scale = *operands.outputs[1];
  const auto& zero_point = *operands.outputs[2];
  require(operands,
          source.type == Type::float32 && result.type == Type::uint8 &&
              scale.type == Type::float32 && zero_point.type == Type::uint8,
          "only float32 to uint8 is supported");
  require(operands,
          source.num_elements() == result.num_elements() && scale.num_elements() == 1 &&
              zero_point.num_elements() == 1,
          "its outputs do not fit");
  return make_plain_step([from = source.as<float>(), count = source.num_elements(),
                          to = result.as<std::uint8_t>(), made_scale = scale.as<float>(),
                          made_zero_point = zero_point.as<std::uint8_t>(),
                          threads = operands.threads] {
    const DynamicScale found = quantise_dynamically(from, count, to, threads);
    *made_scale = found.scale;
    *made_zero_point = found.zero_point;
  });
}

const Registration registered{program::Operator::DynamicQuantise, make_dynamic_quantise};

}  // namespace

}  // namespace arenite
