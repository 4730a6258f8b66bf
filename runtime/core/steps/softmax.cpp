#include "steps/softmax.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/quantised.hpp"
#include "steps/rows.hpp"

namespace arenite {

namespace {

void softmax(const float* source, float* target, std::size_t count, float beta) {
  const float top = *std::max_element(source, source + count);
  float sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    target[i] = std::exp(beta * (source[i] - top));
    sum += target[i];
  }
  const float factor = 1.0f / sum;
  for (std::size_t i = 0; i < count; ++i) {
    target[i] *= factor;
  }
}

void log_softmax(const float* source, float* target, std::size_t count, float beta) {
  const float top = *std::max_element(source, source + count);
  float sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    sum += std::exp(beta * (source[i] - top));
  }
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
    const float top = in.number(*std::max_element(source, source + count));
    float sum = 0;
    for (std::size_t i = 0; i < count; ++i) {
      sum += std::exp(beta * (in.number(source[i]) - top));
    }
    for (std::size_t i = 0; i < count; ++i) {
      const float x = beta * (in.number(source[i]) - top);
      target[i] = out.integer<T>(is_log ? x - std::log(sum) : std::exp(x) / sum);
    }
  });
}

}  // namespace

std::unique_ptr<Step> make_softmax(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_Softmax();
  require_arity(operands, 1, 1);
  const auto& source = *operands.inputs[0];
  require(operands, source.rank() > 0 && source.shape == operands.outputs[0]->shape,
          "input and output differ");
  require(operands, source.type == operands.outputs[0]->type, "input and output differ in type");
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

}  // namespace arenite
