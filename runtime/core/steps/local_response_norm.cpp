// Local response normalisation over neighbouring channels.
#include <algorithm>
#include <cmath>

#include "registry.hpp"
#include "steps/rows.hpp"

namespace arenite {

namespace {

std::unique_ptr<Step> make_local_response_norm(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_LocalResponseNorm();
  require_arity(operands, 1, 1);
  const auto& source = *operands.inputs[0];
  const auto& target = *operands.outputs[0];
  require(operands, source.rank() > 0 && source.shape == target.shape, "input and output differ");
  require(operands, source.type == program::Type::float32 && target.type == program::Type::float32,
          "only float32 is supported");
  require(operands, lie_apart(operands) || source.data != target.data,
          "its output must not overlap its input");
  require(operands, attributes.size() > 0, "the size must be above 0");
  const std::size_t below = (attributes.size() - 1) / 2;
  const std::size_t above = attributes.size() / 2;
  const float alpha = attributes.alpha() / static_cast<float>(attributes.size());
  const float beta = attributes.beta();
  const float bias = attributes.bias();
  return make_rows<float>(operands, source.shape.back(),
                          [=](const float* from, float* to, std::size_t count) {
                            for (std::size_t i = 0; i < count; ++i) { to[i] = 0; }
                            // The energy of the neighbours, one neighbour at a time.
                            for (std::size_t k = 0; k <= std::min(above, count - 1); ++k) {
                              for (std::size_t i = k; i < count; ++i) {
                                to[i - k] += from[i] * from[i];
                              }
                            }
                            for (std::size_t k = 1; k <= std::min(below, count - 1); ++k) {
                              for (std::size_t i = k; i < count; ++i) {
                                to[i] += from[i - k] * from[i - k];
                              }
                            }
                            // Nearly every network has the exponent 3/4, which takes two square
                            // roots.
                            if (beta == 0.75f) {
                              for (std::size_t i = 0; i < count; ++i) {
                                const float root = std::sqrt(bias + alpha * to[i]);
                                to[i] = from[i] / (root * std::sqrt(root));
                              }
                            } else {
                              for (std::size_t i = 0; i < count; ++i) {
                                to[i] = from[i] / std::pow(bias + alpha * to[i], beta);
                              }
                            }
                          });
}

const Registration registered{program::Operator::LocalResponseNorm, make_local_response_norm};

}  // namespace

}  // namespace arenite
