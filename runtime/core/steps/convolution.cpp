// Convolutions, and products with weights, in floating point.
#include <algorithm>

#include "convolution_checks.hpp"
#include "convolution_step.hpp"
#include "kernels/convolution/convolve.hpp"
#include "kernels/convolution/depthwise.hpp"
#include "registry.hpp"

namespace arenite {

namespace {

bool are_floats(const Operands& operands) {
  const auto is_float = [](const TensorView* view) {
    return view == nullptr || view->type == program::Type::float32;
  };
  return std::all_of(operands.inputs.begin(), operands.inputs.end(), is_float) &&
         is_float(operands.outputs[0]);
}

template <typename Attributes>
FloatStore store(const Operands& operands, const Attributes& attributes, std::size_t num_channels) {
  const auto* bias = optional_input(operands, 2);
  require(operands, bias == nullptr || bias->num_elements() == num_channels,
          "its bias does not fit");
  const auto* addend = optional_input(operands, kAddend);
  require(operands, addend == nullptr || addend->shape == operands.outputs[0]->shape,
          "its addend has another shape than its output");
  require(operands, attributes.min() <= attributes.max(), "its bounds leave nothing between them");
  return {bias == nullptr ? nullptr : bias->as<float>(), nullptr, attributes.min(),
          attributes.max()};
}

std::unique_ptr<Step> make_conv_2d(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_Conv2D();
  require_arity(operands, 2, 5);
  if (!are_floats(operands)) {
    return nullptr;
  }
  const auto& result = *operands.outputs[0];
  const Convolution kernel{conv_window(operands, attributes), attributes.groups(),
                           operands.inputs[1]->as<float>(),
                           store(operands, attributes, result.shape[3])};
  return image_step<float>(operands, convolve, kernel);
}

std::unique_ptr<Step> make_fully_connected(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_FullyConnected();
  require_arity(operands, 2, 5);
  if (!are_floats(operands)) {
    return nullptr;
  }
  const MatrixProduct product(operands);
  const Convolution kernel{{{1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}},
                           1,
                           operands.inputs[1]->as<float>(),
                           store(operands, attributes, product.num_outputs)};
  return pixel_step<float>(operands, convolve, kernel, product.rows);
}

std::unique_ptr<Step> make_depthwise_conv_2d(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_DepthwiseConv2D();
  require_arity(operands, 2, 5);
  if (!are_floats(operands)) {
    return nullptr;
  }
  const auto& result = *operands.outputs[0];
  const DepthwiseConvolution kernel{depthwise_window(operands, attributes),
                                    operands.inputs[1]->as<float>(),
                                    store(operands, attributes, result.shape[3])};
  return image_step<float>(operands, convolve_depthwise, kernel);
}

const Registration registered[] = {
    {program::Operator::Conv2D, make_conv_2d},
    {program::Operator::DepthwiseConv2D, make_depthwise_conv_2d},
    {program::Operator::FullyConnected, make_fully_connected},
};

}  // namespace

}  // namespace arenite
