// Running sums along an axis.
#include "kernels/wrapping.hpp"
#include "registry.hpp"
#include "steps/axis_split.hpp"

namespace arenite {

namespace {

template <typename T>
class CumulativeSumStep final : public Step {
 public:
  CumulativeSumStep(const Operands& operands, const AxisSplit& split, bool exclusive, bool reverse)
      : source_(operands.inputs[0]->as<T>()),
        target_(operands.outputs[0]->as<T>()),
        split_(split),
        is_empty_(operands.inputs[0]->size == 0),
        exclusive_(exclusive),
        reverse_(reverse) {}

  void run() override {
    if (is_empty_) { return; }
    for (std::size_t outer = 0; outer < split_.outer; ++outer) {
      for (std::size_t inner = 0; inner < split_.inner; ++inner) {
        const std::size_t start = outer * split_.length * split_.inner + inner;
        T total = 0;
        for (std::size_t i = 0; i < split_.length; ++i) {
          const std::size_t place = reverse_ ? split_.length - 1 - i : i;
          const std::size_t at = start + place * split_.inner;
          const T before = total;
          total = sum(total, source_[at]);
          target_[at] = exclusive_ ? before : total;
        }
      }
    }
  }

 private:
  const T* source_;
  T* target_;
  AxisSplit split_;
  bool is_empty_;
  bool exclusive_;
  bool reverse_;
};

std::unique_ptr<Step> make_cumulative_sum(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_CumulativeSum();
  require_arity(operands, 1, 1);
  const auto& source = *operands.inputs[0];
  require(operands, source.shape == operands.outputs[0]->shape, "input and output differ");
  require(operands, operands.outputs[0]->type == source.type, "input and output differ in type");
  const AxisSplit split(operands, source, attributes.axis());
  const auto make = [&](auto zero) -> std::unique_ptr<Step> {
    return std::make_unique<CumulativeSumStep<decltype(zero)>>(
        operands, split, attributes.exclusive(), attributes.reverse());
  };
  switch (source.type) {
    case program::Type::float32: return make(0.0f);
    case program::Type::int32: return make(std::int32_t{0});
    case program::Type::int64: return make(std::int64_t{0});
    default: return nullptr;
  }
}

const Registration registered{program::Operator::CumulativeSum, make_cumulative_sum};

}  // namespace

}  // namespace arenite
