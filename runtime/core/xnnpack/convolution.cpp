// Convolutions and products with constant weights.
#include <cstdlib>
#include <optional>
#include <string_view>
#include <vector>

#include "../convolution_checks.hpp"
#include "../kernels/convolution/convolve.hpp"
#include "../registry.hpp"
#include "node.hpp"

namespace arenite::xnnpack {

namespace {

// Whether XNNPACK computes floating-point convolutions. On x86-64 our own are as fast, on ARM64
// they take fewer instructions, and they need neither tables nor a second copy of the weights; on
// 32-bit ARM they have not been timed yet.
//
// ARENITE_KERNELS=arenite or =xnnpack in the environment decides otherwise.
bool prefers_xnnpack() {
  static const bool prefers = [] {
    const char* given = std::getenv("ARENITE_KERNELS");
    const std::string_view wanted = given == nullptr ? "" : given;
    if (wanted == "arenite" || wanted == "xnnpack") { return wanted == "xnnpack"; }
#if defined(__x86_64__) || defined(__aarch64__)
    return false;
#else
    return true;
#endif
  }();
  return prefers;
}

// A packed filter, unpacked for XNNPACK, which packs it in its own way.
class UnpackedFilter {
 public:
  // Of a packed filter, in so many groups, whose panels hold `outputs` in all.
  UnpackedFilter(const TensorView& packed, std::size_t groups, std::size_t outputs)
      : view_(packed) {
    const std::size_t depth = packed.num_elements() / packed.shape[0] / kPanel;
    const std::size_t per_group = outputs / groups;
    const std::size_t panels = packed.shape[0] / groups;
    elements_.resize(outputs * depth);
    float* to = elements_.data();
    for (std::size_t group = 0; group < groups; ++group) {
      for (std::size_t output = 0; output < per_group; ++output, to += depth) {
        const std::size_t panel = group * panels + output / kPanel;
        const float* from = packed.as<float>() + panel * depth * kPanel + output % kPanel;
        for (std::size_t k = 0; k < depth; ++k) { to[k] = from[k * kPanel]; }
      }
    }
    view_.shape.pop_back();
    view_.shape[0] = outputs;
    view_.data = reinterpret_cast<std::byte*>(elements_.data());
    view_.size = elements_.size() * sizeof(float);
  }
  UnpackedFilter(const UnpackedFilter&) = delete;
  UnpackedFilter& operator=(const UnpackedFilter&) = delete;

  const TensorView& view() const { return view_; }

 private:
  std::vector<float> elements_;
  TensorView view_;
};

// XNNPACK aborts on integer scales outside its range instead of refusing them. With a scale for
// each channel it computes in floating point, which has no lower bound.
void require_scales(const Operands& operands) {
  const auto& source = *operands.inputs[0];
  const auto& filter = *operands.inputs[1];
  const auto& result = *operands.outputs[0];
  require(operands, source.scales.size() <= 1 && result.scales.size() <= 1,
          "its input or output has a scale for each channel");
  if (!source.is_quantised() || !filter.is_quantised() || !result.is_quantised()) { return; }
  const float lowest = filter.scales.size() == 1 ? 0x1.0p-32f : 0.0f;
  for (const float scale : filter.scales) {
    const float factor = source.scales[0] * scale / result.scales[0];
    require(operands, factor >= lowest && factor < 256.0f,
            "its scales are too far apart for integers");
  }
}

// Whether another kernel set makes the step: weights are computed or loaded in runs, there is an
// addend, or XNNPACK is not preferred.
bool is_others(const Operands& operands) {
  const auto& filter = *operands.inputs[1];
  return filter.type == program::Type::float32 &&
         (!filter.is_constant || operands.inputs.size() > 3 || !prefers_xnnpack());
}

// Requires constant weights with one scale or with one for each output channel, along `axis`; and a
// bias with one element for each output channel.
void require_weights(const Operands& operands, std::size_t num_channels, std::uint32_t axis) {
  require_arity(operands, 2, 3);
  const auto& filter = *operands.inputs[1];
  const auto* bias = optional_input(operands, 2);
  require(operands, filter.is_constant, "its weights must be constant");
  require(
      operands,
      filter.scales.size() <= 1 || (filter.axis == axis && filter.scales.size() == num_channels),
      "its filter has scales that are not those of its output channels");
  require(operands, bias == nullptr || (bias->is_constant && bias->num_elements() == num_channels),
          "its bias does not fit");
  const auto type = operands.inputs[0]->type;
  require(operands, operands.outputs[0]->type == type, "input and output differ in type");
  // Weights of 8 bits may be signed where images are not; XNNPACK says whether it has that.
  require(operands, (filter.type == program::Type::float32) == (type == program::Type::float32),
          "input and weights differ in type");
  require_scales(operands);
}

std::unique_ptr<Step> make_conv_2d(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_Conv2D();
  require_arity(operands, 2, 5);
  if (is_others(operands)) { return nullptr; }
  const auto& source = *operands.inputs[0];
  const auto& filter = *operands.inputs[1];
  const auto& result = *operands.outputs[0];
  const SlidingWindow window = conv_window(operands, attributes);
  const std::size_t groups = attributes.groups();
  const std::size_t num_outputs = result.shape[3];
  require_weights(operands, num_outputs, 0);
  std::optional<UnpackedFilter> unpacked;
  if (is_packed(filter)) { unpacked.emplace(filter, groups, num_outputs); }
  Node node(operands);
  const auto x = node.input(source);
  const auto y = node.output(result);
  const auto weights = node.constant(unpacked.has_value() ? unpacked->view() : filter);
  const auto bias = node.bias(optional_input(operands, 2), source, filter);
  const auto [top, right, bottom, left] = window.padding;
  return node.make(
      xnn_define_convolution_2d(
          node.graph(), top, right, bottom, left, window.kernel[0], window.kernel[1],
          window.strides[0], window.strides[1], window.dilations[0], window.dilations[1],
          static_cast<std::uint32_t>(groups), filter.shape[3], num_outputs / groups,
          attributes.min(), attributes.max(), x, weights, bias, y, 0),
      true);
}

std::unique_ptr<Step> make_depthwise_conv_2d(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_DepthwiseConv2D();
  require_arity(operands, 2, 5);
  if (is_others(operands)) { return nullptr; }
  const auto& source = *operands.inputs[0];
  const auto& filter = *operands.inputs[1];
  const auto& result = *operands.outputs[0];
  const SlidingWindow window = depthwise_window(operands, attributes);
  const std::size_t num_outputs = filter.shape[3];
  const std::size_t channels = source.shape[3];
  require_weights(operands, num_outputs, 3);
  Node node(operands);
  const auto x = node.input(source);
  const auto y = node.output(result);
  const auto weights = node.constant(filter);
  const auto bias = node.bias(optional_input(operands, 2), source, filter);
  const auto [top, right, bottom, left] = window.padding;
  return node.make(xnn_define_depthwise_convolution_2d(
                       node.graph(), top, right, bottom, left, window.kernel[0], window.kernel[1],
                       window.strides[0], window.strides[1], window.dilations[0],
                       window.dilations[1], static_cast<std::uint32_t>(num_outputs / channels),
                       channels, attributes.min(), attributes.max(), x, weights, bias, y, 0),
                   true);
}

std::unique_ptr<Step> make_fully_connected(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_FullyConnected();
  require_arity(operands, 2, 5);
  if (is_others(operands)) { return nullptr; }
  const auto& source = *operands.inputs[0];
  const auto& weights = *operands.inputs[1];
  const auto& result = *operands.outputs[0];
  const auto [rows, num_inputs, num_outputs] = MatrixProduct(operands);
  require_weights(operands, num_outputs, 0);
  Node node(operands);
  if (weights.scales.size() > 1) {
    // Old versions have a scale for each channel in convolutions alone: one pixel a row.
    const auto x = node.input(source, {rows, 1, 1, num_inputs});
    const auto y = node.output(result, {rows, 1, 1, num_outputs});
    const auto filter = node.constant(weights, {num_outputs, 1, 1, num_inputs});
    const auto bias = node.bias(optional_input(operands, 2), source, weights);
    return node.make(xnn_define_convolution_2d(node.graph(), 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1,
                                               num_inputs, num_outputs, attributes.min(),
                                               attributes.max(), x, filter, bias, y, 0),
                     true);
  }
  std::optional<UnpackedFilter> unpacked;
  if (is_packed(weights)) { unpacked.emplace(weights, 1, num_outputs); }
  const auto x = node.input(source, {rows, num_inputs});
  const auto y = node.output(result, {rows, num_outputs});
  const auto filter = node.constant(unpacked.has_value() ? unpacked->view() : weights);
  const auto bias = node.bias(optional_input(operands, 2), source, weights);
  return node.make(xnn_define_fully_connected(node.graph(), attributes.min(), attributes.max(), x,
                                              filter, bias, y, 0),
                   true);
}

const Registration registered[] = {
    {program::Operator::Conv2D, make_conv_2d, KernelSet::xnnpack},
    {program::Operator::DepthwiseConv2D, make_depthwise_conv_2d, KernelSet::xnnpack},
    {program::Operator::FullyConnected, make_fully_connected, KernelSet::xnnpack},
};

}  // namespace

}  // namespace arenite::xnnpack
