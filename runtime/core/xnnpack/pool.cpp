// Pools over windows.
#include "../kernels/quantised.hpp"
#include "../operand_checks.hpp"
#include "../registry.hpp"
#include "../sliding_window.hpp"
#include "node.hpp"

namespace arenite::xnnpack {

namespace {

std::unique_ptr<Step> make_pool_2d(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_Pool2D();
  if (operands.outputs.size() > 1) {
    return nullptr;
  }
  require_arity(operands, 1, 1);
  require(operands, attributes.kind() <= program::PoolKind::MAX, "its kind is unknown");
  require_one_scale(operands);
  const auto& source = *operands.inputs[0];
  const auto& result = *operands.outputs[0];
  const SlidingWindow window{numbers<2>(operands, attributes.window(), 1),
                             numbers<2>(operands, attributes.strides(), 1),
                             numbers<2>(operands, attributes.dilations(), 1),
                             numbers<4>(operands, attributes.padding(), 0)};
  require_images(operands, window);
  require(operands, source.shape[3] == result.shape[3], "the channels differ");
  const auto [top, right, bottom, left] = window.padding;
  const bool is_average = attributes.kind() == program::PoolKind::average;
  const bool is_dilated = window.dilations[0] != 1 || window.dilations[1] != 1;
  const bool is_one = window.kernel[0] == 1 && window.kernel[1] == 1;
  const bool is_padded = (top | right | bottom | left) != 0;
  if (is_one || (is_average && (is_dilated || (attributes.count_padding() && is_padded)))) {
    return nullptr;
  }
  // A window must not lie wholly in the padding.
  if (top >= window.kernel[0] || bottom >= window.kernel[0] || left >= window.kernel[1] ||
      right >= window.kernel[1]) {
    return nullptr;
  }
  Node node(operands);
  const auto x = node.input(source);
  const auto y = node.output(result);
  const float min = attributes.min();
  const float max = attributes.max();
  if (!is_average) {
    return node.make(
        xnn_define_max_pooling_2d(node.graph(), top, right, bottom, left, window.kernel[0],
                                  window.kernel[1], window.strides[0], window.strides[1],
                                  window.dilations[0], window.dilations[1], min, max, x, y, 0),
        false);
  }
  if (result.shape[1] == 1 && result.shape[2] == 1 && !is_padded &&
      window.kernel[0] == source.shape[1] && window.kernel[1] == source.shape[2]) {
    return node.make(xnn_define_global_average_pooling_2d(node.graph(), min, max, x, y, 0), false);
  }
  return node.make(xnn_define_average_pooling_2d(
                       node.graph(), top, right, bottom, left, window.kernel[0], window.kernel[1],
                       window.strides[0], window.strides[1], min, max, x, y, 0),
                   false);
}

const Registration registered{program::Operator::Pool2D, make_pool_2d, KernelSet::xnnpack};

}  // namespace

}  // namespace arenite::xnnpack
