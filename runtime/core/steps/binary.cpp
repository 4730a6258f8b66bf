// Binary functions with broadcasting.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/quantised.hpp"
#include "kernels/quantised_sum.hpp"
#include "kernels/wrapping.hpp"
#include "registry.hpp"
#include "steps/binary_step.hpp"

namespace arenite {

namespace {

using program::BinaryFunction;
using program::Type;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <typename Source, typename Target, Copies copies = Copies::one, typename Function>
std::unique_ptr<Step> make_elementwise(const Operands& operands, Function function) {
  return std::make_unique<BinaryStep<copies, Source, Target, Function>>(operands, function);
}

template <typename T>
T divided(T a, T b) {
  if (b == 0) { return 0; }
  return b == -1 ? difference(T{0}, a) : a / b;
}

template <typename T>
T remainder(T a, T b) {  // of the sign of b
  if (b == 0 || b == -1) { return 0; }
  const T rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

// A function whose loops are compiled once for all functions of its type: each element takes a
// call. For functions on which networks spend no time.
template <typename Result, typename T>
using Called = Result (*)(T, T);

// Calls use(f) with the comparison of that name, if it is one.
template <typename T, typename Use>
void with_comparison(BinaryFunction function, const Use& use) {
  switch (function) {
    case BinaryFunction::equal: return use([](T a, T b) { return a == b; });
    case BinaryFunction::not_equal: return use([](T a, T b) { return a != b; });
    case BinaryFunction::less: return use([](T a, T b) { return a < b; });
    case BinaryFunction::less_equal: return use([](T a, T b) { return a <= b; });
    case BinaryFunction::greater: return use([](T a, T b) { return a > b; });
    case BinaryFunction::greater_equal: return use([](T a, T b) { return a >= b; });
    default: return;
  }
}

template <typename T>
std::unique_ptr<Step> make_comparison(const Operands& operands, BinaryFunction name) {
  std::unique_ptr<Step> step;
  with_comparison<T>(name,
                     [&](auto function) { step = make_elementwise<T, bool>(operands, function); });
  return step;
}

// Calls use(f) with the function of that name, if it is one of those on which networks spend most
// time.
template <typename Use>
void with_frequent_function(BinaryFunction function, const Use& use) {
  switch (function) {
    case BinaryFunction::add: return use([](float a, float b) { return a + b; });
    case BinaryFunction::subtract: return use([](float a, float b) { return a - b; });
    case BinaryFunction::multiply: return use([](float a, float b) { return a * b; });
    default: return;
  }
}

// The same for those on which networks spend some time.
template <typename Use>
void with_common_function(BinaryFunction function, const Use& use) {
  switch (function) {
    case BinaryFunction::divide: return use([](float a, float b) { return a / b; });
    case BinaryFunction::maximum: return use([](float a, float b) { return a > b ? a : b; });
    case BinaryFunction::minimum: return use([](float a, float b) { return a < b ? a : b; });
    case BinaryFunction::squared_difference:
      return use([](float a, float b) { return (a - b) * (a - b); });
    case BinaryFunction::prelu: return use([](float a, float b) { return a < 0 ? a * b : a; });
    default: return;
  }
}

// The same for the other functions.
template <typename Use>
void with_rare_function(BinaryFunction function, const Use& use) {
  switch (function) {
    case BinaryFunction::power:  // cubes are in activations that are written out
      return use([](float a, float b) { return b == 3.0f ? a * a * a : std::pow(a, b); });
    case BinaryFunction::modulus:
      return use([](float a, float b) { return a - b * std::floor(a / b); });
    case BinaryFunction::floor_divide:
      return use([](float a, float b) { return std::floor(a / b); });
    default: return;
  }
}

// The same for integers; every result is defined.
template <typename T, typename Use>
void with_function_of_integers(BinaryFunction function, const Use& use) {
  switch (function) {
    case BinaryFunction::add: return use([](T a, T b) { return sum(a, b); });
    case BinaryFunction::subtract: return use([](T a, T b) { return difference(a, b); });
    case BinaryFunction::multiply: return use([](T a, T b) { return product(a, b); });
    case BinaryFunction::divide: return use([](T a, T b) { return divided(a, b); });
    case BinaryFunction::maximum: return use([](T a, T b) { return a > b ? a : b; });
    case BinaryFunction::minimum: return use([](T a, T b) { return a < b ? a : b; });
    case BinaryFunction::modulus: return use([](T a, T b) { return remainder(a, b); });
    case BinaryFunction::floor_divide:
      return use(
          [](T a, T b) { return b == 0 ? T{0} : divided(difference(a, remainder(a, b)), b); });
    default: return;
  }
}

// Clamps the results of a function.
template <typename T, Copies copies, typename Function>
std::unique_ptr<Step> make_clamped(const Operands& operands, Function function, T min, T max) {
  return make_elementwise<T, T, copies>(operands, [=](T a, T b) {
    const T value = function(a, b);
    return std::min(std::max(value, min), max);
  });
}

std::unique_ptr<Step> make_of_floats(const Operands& operands, const program::Binary& attributes) {
  std::unique_ptr<Step> step;
  const float min = attributes.min();
  const float max = attributes.max();
  const bool clamps = min > -kInfinity || max < kInfinity;
  constexpr Copies kCopies = Copies::for_wider_vectors;
  with_frequent_function(attributes.function(), [&](auto function) {
    step = clamps ? make_clamped<float, kCopies>(operands, function, min, max)
                  : make_elementwise<float, float, kCopies>(operands, function);
  });
  // Infinite bounds clamp nothing: these functions are compiled once.
  with_common_function(attributes.function(), [&](auto function) {
    step = make_clamped<float, kCopies>(operands, function, min, max);
  });
  with_rare_function(attributes.function(), [&](Called<float, float> function) {
    step = make_clamped<float, Copies::one>(operands, function, min, max);
  });
  return step;
}

template <typename T>
std::unique_ptr<Step> make_of_integers(const Operands& operands,
                                       const program::Binary& attributes) {
  std::unique_ptr<Step> step;
  with_function_of_integers<T>(attributes.function(), [&](Called<T, T> function) {
    step = make_clamped<T, Copies::one>(operands, function, saturate<T>(attributes.min()),
                                        saturate<T>(attributes.max()));
  });
  return step;
}

// Sums of pairs by vectors of bytes; with broadcasting, one by one.
template <typename T>
class QuantisedSumStep final : public BroadcastStep<T, T> {
 public:
  QuantisedSumStep(const Operands& operands, const QuantisedSum& sum, AddQuantised add)
      : BroadcastStep<T, T>(operands), sum_(sum), add_(add) {}

 private:
  void make(const Walk<T, T>& walk, std::size_t first, std::size_t count) const override {
    const auto& inner = walk.broadcast.inner;
    if (walk.broadcast.num_rows == 1 && inner.strides[0] == 1 && inner.strides[1] == 1) {
      add_(sum_, walk.one + first, walk.other + first, walk.target + first, count);
      return;
    }
    make_part(walk, first, count, [sum = sum_](T a, T b) { return sum.of(a, b); });
  }

  QuantisedSum sum_;
  AddQuantised add_;
};

template <typename T>
std::unique_ptr<Step> make_quantised_sum(const Operands& operands,
                                         const program::Binary& attributes) {
  const Scale one = Scale::of(*operands.inputs[0]);
  const Scale other = Scale::of(*operands.inputs[1]);
  const Scale target = Scale::of(*operands.outputs[0]);
  QuantisedSum sum(one, other, target, attributes.function() == BinaryFunction::subtract);
  sum.min = target.quantise<T>(attributes.min());
  sum.max = target.quantise<T>(attributes.max());
  const bool are_pairs = operands.inputs[0]->shape == operands.inputs[1]->shape;
  if (const auto add = are_pairs ? find_quantised_add<T>(sum) : nullptr) {
    return std::make_unique<QuantisedSumStep<T>>(operands, sum, add);
  }
  return make_elementwise<T, T, Copies::for_wider_vectors>(operands,
                                                           [=](T a, T b) { return sum.of(a, b); });
}

template <typename T>
std::unique_ptr<Step> make_quantised_product(const Operands& operands,
                                             const program::Binary& attributes) {
  const Scale one = Scale::of(*operands.inputs[0]);
  const Scale other = Scale::of(*operands.inputs[1]);
  const Scale target = Scale::of(*operands.outputs[0]);
  const float ratio = one.scale * other.scale / target.scale;
  const auto low = static_cast<float>(target.quantise<T>(attributes.min()) - target.zero_point);
  const auto high = static_cast<float>(target.quantise<T>(attributes.max()) - target.zero_point);
  const std::int32_t zero_point = target.zero_point;
  return make_elementwise<T, T, Copies::for_wider_vectors>(operands, [=](T a, T b) {
    constexpr float kRounder = 12'582'912.0f;  // leaves the nearest integer, as Scale::quantise
    const std::int32_t exact = (a - one.zero_point) * (b - other.zero_point);
    const float value = std::min(std::max(static_cast<float>(exact) * ratio, low), high);
    return static_cast<T>(static_cast<std::int32_t>((value + kRounder) - kRounder) + zero_point);
  });
}

template <typename T>
std::unique_ptr<Step> make_of_quantised(const Operands& operands,
                                        const program::Binary& attributes) {
  require_one_scale(operands);
  const Scale one = Scale::of(*operands.inputs[0]);
  const Scale other = Scale::of(*operands.inputs[1]);
  const Scale target = Scale::of(*operands.outputs[0]);
  const auto name = attributes.function();
  if ((name == BinaryFunction::add || name == BinaryFunction::subtract) &&
      QuantisedSum::fits(one.scale / target.scale, other.scale / target.scale)) {
    return make_quantised_sum<T>(operands, attributes);
  }
  if (name == BinaryFunction::multiply) { return make_quantised_product<T>(operands, attributes); }
  const float min = attributes.min();
  const float max = attributes.max();
  std::unique_ptr<Step> step;
  const auto on_numbers = [&](auto function) {
    step = make_elementwise<T, T>(operands, [=](T a, T b) {
      const float value = function(one.dequantise(a), other.dequantise(b));
      return target.template quantise<T>(std::min(std::max(value, min), max));
    });
  };
  const auto on_called = [&](Called<float, float> function) { on_numbers(function); };
  with_frequent_function(name, on_called);
  with_common_function(name, on_numbers);
  with_rare_function(name, on_called);
  return step;
}

std::unique_ptr<Step> make_logical(const Operands& operands, BinaryFunction function) {
  using Truth = std::uint8_t;
  switch (function) {
    case BinaryFunction::logical_and:
      return make_elementwise<Truth, bool>(operands,
                                           [](Truth a, Truth b) { return a != 0 && b != 0; });
    case BinaryFunction::logical_or:
      return make_elementwise<Truth, bool>(operands,
                                           [](Truth a, Truth b) { return a != 0 || b != 0; });
    case BinaryFunction::logical_xor:
    case BinaryFunction::not_equal:
      return make_elementwise<Truth, bool>(operands,
                                           [](Truth a, Truth b) { return (a != 0) != (b != 0); });
    case BinaryFunction::equal:
      return make_elementwise<Truth, bool>(operands,
                                           [](Truth a, Truth b) { return (a != 0) == (b != 0); });
    default: return nullptr;
  }
}

std::unique_ptr<Step> make_binary(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_Binary();
  require_arity(operands, 2, 2);
  const Type type = operands.inputs[0]->type;
  const Type made = operands.outputs[0]->type;
  const auto function = attributes.function();
  require(operands, operands.inputs[1]->type == type, "the inputs differ in type");
  if (type == Type::boolean) {
    require(operands, made == Type::boolean, "its output must be boolean");
    return make_logical(operands, function);
  }
  if (made == Type::boolean) {
    switch (type) {
      case Type::float32: return make_comparison<float>(operands, function);
      case Type::int32: return make_comparison<std::int32_t>(operands, function);
      case Type::int64: return make_comparison<std::int64_t>(operands, function);
      default: return nullptr;
    }
  }
  require(operands, made == type, "input and output differ in type");
  switch (type) {
    case Type::float32: return make_of_floats(operands, attributes);
    case Type::int8: return make_of_quantised<std::int8_t>(operands, attributes);
    case Type::uint8: return make_of_quantised<std::uint8_t>(operands, attributes);
    case Type::int32: return make_of_integers<std::int32_t>(operands, attributes);
    case Type::int64: return make_of_integers<std::int64_t>(operands, attributes);
    default: return nullptr;
  }
}

const Registration registered{program::Operator::Binary, make_binary};

}  // namespace

}  // namespace arenite
