// Running sums along an axis.
#include "kernels/wrapping.hpp"
#include "registry.hpp"
#include "steps/axis_split.hpp"
#include "steps/of_type.hpp"

namespace arenite {

namespace {

std::unique_ptr<Step> make_cumulative_sum(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_CumulativeSum();
  require_arity(operands, 1, 1);
  const auto& source = *operands.inputs[0];
  require(operands, source.shape == operands.outputs[0]->shape, "input and output differ");
  require(operands, operands.outputs[0]->type == source.type, "input and output differ in type");
  const AxisSplit split(operands, source, attributes.axis());
  const auto make = [&](auto zero) {
    using T = decltype(zero);
    return make_plain_step([from = source.as<T>(), to = operands.outputs[0]->as<T>(), split,
                            is_empty = source.size == 0, is_exclusive = attributes.exclusive(),
                            is_reverse = attributes.reverse()] {
      if (is_empty) { return; }
      for (std::size_t outer = 0; outer < split.outer; ++outer) {
        for (std::size_t inner = 0; inner < split.inner; ++inner) {
          const std::size_t start = outer * split.length * split.inner + inner;
          T total = 0;
          for (std::size_t i = 0; i < split.length; ++i) {
            const std::size_t place = is_reverse ? split.length - 1 - i : i;
            const std::size_t at = start + place * split.inner;
            const T before = total;
            total = sum(total, from[at]);
            to[at] = is_exclusive ? before : total;
          }
        }
      }
    });
  };
  return source.type == program::Type::float32 ? make(0.0f) : of_index_type(source.type, make);
}

const Registration registered{program::Operator::CumulativeSum, make_cumulative_sum};

}  // namespace

}  // namespace arenite
