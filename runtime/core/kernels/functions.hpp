// Unary functions, by name.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/approximations.hpp"
#include "kernels/gelu.hpp"
#include "program_generated.h"

namespace arenite {

inline float within_one(float x) { return bounded(x, kBounds.zero, kBounds.one); }
#ifdef __aarch64__
// `numerator` / (1 + 2^(x * by)) in fewer instructions than by e^x: of the fraction g of the
// exponent, negative, (q + p) / (q - p) is 2^g for p = g (a + b g^2) and q = c + g^2. A product
// that is subtracted before it is rounded needs no second constant: only the error of `by` stays,
// which for the logarithm of e is 1.4e-8 of x.
inline float logistic_of_power(float x, float by, float numerator) {
  constexpr float kRounder = 12'582'912.0f + 127.0f;  // as exponential_within has it
  const float shifted = std::fma(x, by, kRounder);
  const float power = shifted - kRounder;
  const float g = std::fma(-x, by, power);
  const float square = g * g;
  const float odd = g * std::fma(square, 0.05769017f, 7.2152867f);
  const float even = square + 20.818916f;
  std::uint32_t bits;
  std::memcpy(&bits, &shifted, sizeof bits);
  bits <<= 23;
  float scale;
  std::memcpy(&scale, &bits, sizeof scale);
  const float above = even + odd;
  return above / std::fma(scale, even - odd, above) * numerator;
}
constexpr float kLogOfE = 1.44269504f;
inline float logistic_within(float x) { return logistic_of_power(x, kLogOfE, 1.0f); }
#else
// 1 / (1 + e^x) of any x that lies within the bounds of exponential_within.
inline float logistic_within(float x) { return 1.0f / (1.0f + exponential_within(x)); }
#endif
// Beyond the bounds it is 1 or, nearly, 0.
inline float sigmoid(float x) {
  return logistic_within(bounded(-x, kBounds.lowest_power, kBounds.highest_power));
}
// x times the sigmoid of -slope x; of NaN the product is NaN.
class Swish {
 public:
#ifdef __aarch64__
  explicit Swish(float slope)
      : low_(std::min(kBounds.lowest_power / slope, kBounds.highest_power / slope)),
        high_(std::max(kBounds.lowest_power / slope, kBounds.highest_power / slope)),
        by_(slope * kLogOfE) {}

  float operator()(float x) const {
    return logistic_of_power(lesser(greater(x, low_), high_), by_, x);
  }

 private:
  float low_;
  float high_;
  float by_;
#else
  explicit Swish(float slope) : slope_(slope) {}

  float operator()(float x) const {
    return x * logistic_within(
                   lesser(greater(slope_ * x, kBounds.lowest_power), kBounds.highest_power));
  }

 private:
  float slope_;
#endif
};
inline float softplus(float x) {
  return std::max(x, 0.0f) + logarithm_of_one_and(exponential(-std::abs(x)));
}
// x tanh(log(1 + e^x)), without the logarithm.
inline float mish(float x) {
  const float power = exponential(std::min(x, 20.0f));
  const float both = power * (power + 2.0f);
  return x * (both / (both + 2.0f));
}

// Calls use(f) with the function f(x) of that name, so that a loop over it can be inlined.
template <typename Use>
void with_function(program::UnaryFunction function, float alpha, float beta, const Use& use) {
  using program::UnaryFunction;
  constexpr float kSixth = 1.0f / 6.0f;
  constexpr float kRootTwoOverPi = 0.79788456080286536f;
  switch (function) {
    case UnaryFunction::clamp:
      return use([=](float x) { return std::min(std::max(x, alpha), beta); });
    case UnaryFunction::absolute: return use([](float x) { return std::abs(x); });
    case UnaryFunction::negate: return use([](float x) { return -x; });
    case UnaryFunction::square: return use([](float x) { return x * x; });
    case UnaryFunction::square_root: return use([](float x) { return std::sqrt(x); });
    case UnaryFunction::reciprocal_square_root:
      return use([](float x) { return 1.0f / std::sqrt(x); });
    case UnaryFunction::reciprocal: return use([](float x) { return 1.0f / x; });
    case UnaryFunction::floor: return use([](float x) { return std::floor(x); });
    case UnaryFunction::ceiling: return use([](float x) { return std::ceil(x); });
    case UnaryFunction::round: return use([](float x) { return std::nearbyint(x); });
    case UnaryFunction::sign:
      return use([](float x) { return static_cast<float>((x > 0) - (x < 0)); });
    case UnaryFunction::exponential: return use([](float x) { return exponential(x); });
    case UnaryFunction::logarithm: return use([](float x) { return std::log(x); });
    case UnaryFunction::sine: return use([](float x) { return std::sin(x); });
    case UnaryFunction::cosine: return use([](float x) { return std::cos(x); });
    case UnaryFunction::hyperbolic_tangent:
      return use([](float x) { return hyperbolic_tangent(x); });
    case UnaryFunction::sigmoid: return use([](float x) { return sigmoid(x); });
    case UnaryFunction::hard_sigmoid:
      return use([=](float x) { return within_one(alpha * x + beta); });
    case UnaryFunction::hard_swish:
      return use([](float x) { return x * within_one(x * kSixth + 0.5f); });
    case UnaryFunction::swish: return use([each = Swish(-alpha)](float x) { return each(x); });
    case UnaryFunction::elu:
      return use([=](float x) { return x > 0 ? x : alpha * exponential_less_one_below(x); });
    case UnaryFunction::celu:
      return use(
          [=](float x) { return x > 0 ? x : alpha * exponential_less_one_below(x / alpha); });
    case UnaryFunction::selu:
      return use(
          [=](float x) { return beta * (x > 0 ? x : alpha * exponential_less_one_below(x)); });
    case UnaryFunction::leaky_relu: return use([=](float x) { return x < 0 ? alpha * x : x; });
    case UnaryFunction::thresholded_relu: return use([=](float x) { return x > alpha ? x : 0.0f; });
    case UnaryFunction::softplus: return use([](float x) { return softplus(x); });
    case UnaryFunction::softsign: return use([](float x) { return x / (1.0f + std::abs(x)); });
    case UnaryFunction::mish: return use([](float x) { return mish(x); });
    case UnaryFunction::erf: return use([](float x) { return error_function(x); });
    case UnaryFunction::gelu: return use(Gelu{});
    case UnaryFunction::gelu_tanh:
      return use([=](float x) {
        return 0.5f * x * (1.0f + hyperbolic_tangent(kRootTwoOverPi * (x + 0.044715f * x * x * x)));
      });
    case UnaryFunction::logical_not:
    case UnaryFunction::is_nan: return;  // not of numbers to numbers
  }
}

}  // namespace arenite
