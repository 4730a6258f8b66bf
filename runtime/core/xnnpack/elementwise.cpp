// Functions of one number and of two, and softmax.
#include <algorithm>
#include <cmath>

#include "../kernels/quantised.hpp"
#include "../operand_checks.hpp"
#include "../registry.hpp"
#include "node.hpp"

namespace arenite::xnnpack {

namespace {

using program::BinaryFunction;
using program::UnaryFunction;

constexpr std::size_t kMaxRank = 6;

bool is_plain(float min, float max) { return std::isinf(min) && std::isinf(max); }

// Shape with axes in front, up to a rank.
std::vector<std::size_t> of_rank(const std::vector<std::size_t>& shape, std::size_t rank) {
  std::vector<std::size_t> result(rank - shape.size(), 1);
  result.insert(result.end(), shape.begin(), shape.end());
  return result;
}

std::unique_ptr<Step> make_unary(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_Unary();
  require_arity(operands, 1, 1);
  require_one_scale(operands);
  const auto& source = *operands.inputs[0];
  const auto& result = *operands.outputs[0];
  require(operands, source.num_elements() == result.num_elements(), "input and output differ");
  if (source.type != result.type || source.size == 0 || source.is_constant) {
    return nullptr;
  }
  const std::size_t row = source.shape.empty() ? 1 : source.shape.back();
  const std::vector<std::size_t> shape{source.num_elements() / row, row};
  Node node(operands);
  const auto x = node.input(source, shape);
  const auto y = node.output(result, shape);
  const auto graph = node.graph();
  const float alpha = attributes.alpha();
  switch (attributes.function()) {
    case UnaryFunction::clamp:
      return node.make(xnn_define_clamp(graph, alpha, attributes.beta(), x, y, 0), false);
    case UnaryFunction::absolute:
      return node.make(xnn_define_abs(graph, x, y, 0), false);
    case UnaryFunction::negate:
      return node.make(xnn_define_negate(graph, x, y, 0), false);
    case UnaryFunction::square:
      return node.make(xnn_define_square(graph, x, y, 0), false);
    case UnaryFunction::square_root:
      return node.make(xnn_define_square_root(graph, x, y, 0), false);
    case UnaryFunction::floor:
      return node.make(xnn_define_floor(graph, x, y, 0), false);
    case UnaryFunction::ceiling:
      return node.make(xnn_define_ceiling(graph, x, y, 0), false);
    case UnaryFunction::round:
      return node.make(xnn_define_bankers_rounding(graph, x, y, 0), false);
    case UnaryFunction::sigmoid:
      return node.make(xnn_define_sigmoid(graph, x, y, 0), false);
    case UnaryFunction::hard_swish:
      return node.make(xnn_define_hardswish(graph, x, y, 0), false);
    case UnaryFunction::leaky_relu:
      return node.make(xnn_define_leaky_relu(graph, alpha, x, y, 0), false);
    case UnaryFunction::elu:
      return node.make(xnn_define_elu(graph, alpha, x, y, 0), false);
    default:
      return nullptr;
  }
}

std::unique_ptr<Step> make_binary(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_Binary();
  require_arity(operands, 2, 2);
  require_one_scale(operands);
  const auto& one = *operands.inputs[0];
  const auto& other = *operands.inputs[1];
  const auto& result = *operands.outputs[0];
  const std::size_t rank = std::max(one.rank(), other.rank());
  if (one.type != other.type || one.type != result.type || result.rank() != rank ||
      rank > kMaxRank || result.size == 0 || (one.is_constant && other.is_constant)) {
    return nullptr;
  }
  const auto one_shape = of_rank(one.shape, rank);
  const auto other_shape = of_rank(other.shape, rank);
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const std::size_t a = one_shape[axis];
    const std::size_t b = other_shape[axis];
    require(operands, (a == b || a == 1 || b == 1) && result.shape[axis] == (a == 1 ? b : a),
            "the shapes do not broadcast to that of the output");
  }
  Node node(operands);
  const auto a = one.is_constant ? node.constant(one, one_shape) : node.input(one, one_shape);
  const auto b =
      other.is_constant ? node.constant(other, other_shape) : node.input(other, other_shape);
  const auto y = node.output(result);
  const auto graph = node.graph();
  const float min = attributes.min();
  const float max = attributes.max();
  switch (attributes.function()) {
    case BinaryFunction::add:
      return node.make(xnn_define_add2(graph, min, max, a, b, y, 0), false);
    case BinaryFunction::subtract:
      return node.make(xnn_define_subtract(graph, min, max, a, b, y, 0), false);
    case BinaryFunction::multiply:
      return node.make(xnn_define_multiply2(graph, min, max, a, b, y, 0), false);
    case BinaryFunction::divide:
      return node.make(xnn_define_divide(graph, min, max, a, b, y, 0), false);
    default:
      break;
  }
  if (!is_plain(min, max)) {
    return nullptr;
  }
  switch (attributes.function()) {
    case BinaryFunction::maximum:
      return node.make(xnn_define_maximum2(graph, a, b, y, 0), false);
    case BinaryFunction::minimum:
      return node.make(xnn_define_minimum2(graph, a, b, y, 0), false);
    case BinaryFunction::squared_difference:
      return node.make(xnn_define_squared_difference(graph, a, b, y, 0), false);
    default:
      return nullptr;
  }
}

std::unique_ptr<Step> make_softmax(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_Softmax();
  require_arity(operands, 1, 1);
  require_one_scale(operands);
  const auto& source = *operands.inputs[0];
  const auto& result = *operands.outputs[0];
  require(operands, source.shape == result.shape && source.rank() > 0, "input and output differ");
  if (attributes.logarithm() || attributes.beta() != 1.0f || source.size == 0 ||
      source.type != program::Type::float32 || result.type != program::Type::float32) {
    return nullptr;
  }
  const std::vector<std::size_t> shape{source.num_elements() / source.shape.back(),
                                       source.shape.back()};
  Node node(operands);
  const auto x = node.input(source, shape);
  const auto y = node.output(result, shape);
  return node.make(xnn_define_softmax(node.graph(), x, y, 0), false);
}

const Registration registered[] = {
    {program::Operator::Unary, make_unary, KernelSet::xnnpack},
    {program::Operator::Binary, make_binary, KernelSet::xnnpack},
    {program::Operator::Softmax, make_softmax, KernelSet::xnnpack},
};

}  // namespace

}  // namespace arenite::xnnpack
