// Softmax over the last axis, or its logarithm.
#include <cmath>

#include "kernels/approximations.hpp"
#include "kernels/quantised.hpp"
#include "kernels/sums.hpp"
#include "registry.hpp"
#include "steps/rows.hpp"

namespace arenite {

namespace {

template <typename T>
T largest(const T* source, std::size_t count) {
  return fold(
      count, source[0], [=](std::size_t i) { return source[i]; },
      [](T a, T b) { return a > b ? a : b; });
}

void softmax(const float* source, float* target, std::size_t count, float beta) {
  const float top = largest(source, count);
  for (std::size_t i = 0; i < count; ++i) {
    target[i] = exponential_below(beta * (source[i] - top));
  }
  const float factor = 1.0f / sum_of(count, [=](std::size_t i) { return target[i]; });
  for (std::size_t i = 0; i < count; ++i) {
    target[i] *= factor;
  }
}

void log_softmax(const float* source, float* target, std::size_t count, float beta) {
  const float top = largest(source, count);
  const float sum =
      sum_of(count, [=](std::size_t i) { return exponential_below(beta * (source[i] - top)); });
  const float logarithm = std::log(sum);
  for (std::size_t i = 0; i < count; ++i) {
    target[i] = beta * (source[i] - top) - logarithm;
  }
}

template <typename T>
std::unique_ptr<Step> make_of_quantised(const Operands& operands, std::size_t length, float beta,
                                        bool is_log) {
  const Scale in = Scale::of(*operands.inputs[0]);
  const Scale out = Scale::of(*operands.outputs[0]);
  return make_rows<T>(operands, length, [=](const T* source, T* target, std::size_t count) {
    const float top = in.dequantise(largest(source, count));
    const auto power = [=](std::size_t i) {
      return exponential_below(beta * (in.dequantise(source[i]) - top));
    };
    const float sum = sum_of(count, power);
    const float logarithm = std::log(sum);
    for (std::size_t i = 0; i < count; ++i) {
      target[i] = out.quantise<T>(is_log ? beta * (in.dequantise(source[i]) - top) - logarithm
                                         : power(i) / sum);
    }
  });
}

std::unique_ptr<Step> make_softmax(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_Softmax();
  require_arity(operands, 1, 1);
  const auto& source = *operands.inputs[0];
  require(operands, source.rank() > 0 && source.shape == operands.outputs[0]->shape,
          "input and output differ");
  require(operands, source.type == operands.outputs[0]->type, "input and output differ in type");
  require_one_scale(operands);
  const std::size_t length = source.shape.back();
  const float beta = attributes.beta();
  const bool is_log = attributes.logarithm();
  switch (source.type) {
    case program::Type::float32:
      return make_rows<float>(operands, length,
                              [=](const float* from, float* to, std::size_t count) {
                                (is_log ? log_softmax : softmax)(from, to, count, beta);
                              });
    case program::Type::int8:
      return make_of_quantised<std::int8_t>(operands, length, beta, is_log);
    case program::Type::uint8:
      return make_of_quantised<std::uint8_t>(operands, length, beta, is_log);
    default:
      return nullptr;
  }
}

const Registration registered{program::Operator::Softmax, make_softmax};

}  // namespace

}  // namespace arenite
