// Quantisation to 8 bits whose scale and zero point are those of the elements of each run.
#include "kernels/dynamic_quantise.hpp"

#include "operand_checks.hpp"
#include "registry.hpp"

namespace arenite {

namespace {

class DynamicQuantiseStep final : public Step {
 public:
  explicit DynamicQuantiseStep(const Operands& operands)
      : source_(operands.inputs[0]->as<float>()),
        count_(operands.inputs[0]->num_elements()),
        target_(operands.outputs[0]->as<std::uint8_t>()),
        scale_(operands.outputs[1]->as<float>()),
        zero_point_(operands.outputs[2]->as<std::uint8_t>()),
        threads_(operands.threads) {}

  void run() override {
    const DynamicScale found = quantise_dynamically(source_, count_, target_, threads_);
    *scale_ = found.scale;
    *zero_point_ = found.zero_point;
  }

 private:
  const float* source_;
  std::size_t count_;
  std::uint8_t* target_;
  float* scale_;
  std::uint8_t* zero_point_;
  pthreadpool_t threads_;
};

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
  return std::make_unique<DynamicQuantiseStep>(operands);
}

const Registration registered{program::Operator::DynamicQuantise, make_dynamic_quantise};

}  // namespace

}  // namespace arenite
