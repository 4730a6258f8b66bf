// Gradients of the weights of convolutions.
#include "kernels/convolution/weight_gradient.hpp"

#include "operand_checks.hpp"
#include "registry.hpp"

namespace arenite {

namespace {

std::unique_ptr<Step> make_weight_gradient(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_WeightGradient();
  require_arity(operands, 2, 2);
  const auto& source = *operands.inputs[0];
  const auto& gradient = *operands.inputs[1];
  const auto& result = *operands.outputs[0];
  require_floats(operands);
  for (const auto* view : {&source, &gradient, &result}) {
    require(operands, view->rank() == 4 && view->size > 0,
            "its inputs and its output must have rank 4");
  }
  const std::size_t groups = attributes.groups();
  require(operands,
          groups > 0 && source.shape[3] % groups == 0 && gradient.shape[3] % groups == 0 &&
              source.shape[3] / groups == result.shape[1] && gradient.shape[3] == result.shape[0],
          "groups and channels do not fit");
  require(operands, source.shape[0] == gradient.shape[0], "the batches differ");
  require(operands, result.shape[2] < (1u << 24) && result.shape[3] < (1u << 24),
          "its filter is too large");
  const ConvolvedImages shape{
      source.shape[0],
      source.shape[1],
      source.shape[2],
      gradient.shape[1],
      gradient.shape[2],
      groups,
      result.shape[1],
      gradient.shape[3] / groups,
      {static_cast<std::uint32_t>(result.shape[2]), static_cast<std::uint32_t>(result.shape[3])},
      numbers<2>(operands, attributes.strides(), 1),
      numbers<2>(operands, attributes.dilations(), 1),
      numbers<2>(operands, attributes.before(), 0)};
  require(operands,
          shape.strides[0] > 0 && shape.strides[1] > 0 && shape.dilations[0] > 0 &&
              shape.dilations[1] > 0,
          "a stride or dilation is 0");
  require(operands, result.data != source.data && result.data != gradient.data,
          "its output must not overlap its input");
  return make_plain_step(
      [shape, from = source.as<float>(), gradients = gradient.as<float>(), to = result.as<float>(),
       threads = operands.threads] { weight_gradient(shape, from, gradients, to, threads); });
}

const Registration registered{program::Operator::WeightGradient, make_weight_gradient};

}  // namespace

}  // namespace arenite
