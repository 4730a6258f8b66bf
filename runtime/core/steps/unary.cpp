// Functions of one number.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "kernels/byte_table.hpp"
#include "kernels/functions.hpp"
#include "kernels/map.hpp"
#include "kernels/quantised.hpp"
#include "kernels/wrapping.hpp"
#include "operand_checks.hpp"
#include "registry.hpp"
#include "steps/element_step.hpp"

namespace arenite {

namespace {

using program::Type;
using program::UnaryFunction;

template <typename Source, typename Target, typename Function>
class MapStep final : public ElementStep<Source, Target> {
 public:
  MapStep(const Operands& operands, Function function)
      : ElementStep<Source, Target>(operands), map_(function) {}

 private:
  void map(const Source* source, Target* target, std::size_t count) const override {
    map_(source, target, count);
  }

  Map<Source, Target, Function> map_;
};

template <typename Source, typename Target, typename Function>
std::unique_ptr<Step> make_map(const Operands& operands, Function function) {
  return std::make_unique<MapStep<Source, Target, Function>>(operands, function);
}

class TableStep final : public ElementStep<std::uint8_t, std::uint8_t> {
 public:
  TableStep(const Operands& operands, const ByteTable& table)
      : ElementStep<std::uint8_t, std::uint8_t>(operands), table_(table) {}

 private:
  void map(const std::uint8_t* source, std::uint8_t* target, std::size_t count) const override {
    look_up(table_, source, target, count);
  }

  ByteTable table_;
};

using Numbers = std::array<float, 256>;

void apply(const program::Unary& attributes, Numbers& numbers) {
  with_function(attributes.function(), attributes.alpha(), attributes.beta(), [&](auto function) {
    for (float& each : numbers) { each = function(each); }
  });
}

// Any function of 8-bit integers is a table of 256.
template <typename T>
std::unique_ptr<Step> make_table(const Operands& operands, const program::Unary& attributes) {
  const Scale source = Scale::of(*operands.inputs[0]);
  const Scale target = Scale::of(*operands.outputs[0]);
  if (attributes.function() == UnaryFunction::clamp && source.scale == target.scale &&
      source.zero_point == target.zero_point) {
    const T low = target.template quantise<T>(attributes.alpha());
    const T high = target.template quantise<T>(attributes.beta());
    return make_map<T, T>(operands, [=](T x) { return std::min(std::max(x, low), high); });
  }
  Numbers numbers;
  for (std::size_t bits = 0; bits < numbers.size(); ++bits) {
    numbers[bits] = source.dequantise(static_cast<T>(static_cast<std::uint8_t>(bits)));
  }
  apply(attributes, numbers);
  ByteTable table{};
  for (std::size_t bits = 0; bits < table.size(); ++bits) {
    table[bits] = static_cast<std::uint8_t>(target.quantise<T>(numbers[bits]));
  }
  return std::make_unique<TableStep>(operands, table);
}

template <typename T>
std::unique_ptr<Step> make_of_integers(const Operands& operands, const program::Unary& attributes) {
  // Networks spend no time on these: their loop is compiled once for all of them.
  using Called = T (*)(T);
  const auto make = [&](Called function) { return make_map<T, T>(operands, function); };
  switch (attributes.function()) {
    case UnaryFunction::absolute: return make([](T x) { return magnitude(x); });
    case UnaryFunction::negate: return make([](T x) { return difference(T{0}, x); });
    case UnaryFunction::sign: return make([](T x) { return static_cast<T>((x > 0) - (x < 0)); });
    case UnaryFunction::square: return make([](T x) { return product(x, x); });
    case UnaryFunction::clamp: {
      const T low = saturate<T>(attributes.alpha());
      const T high = saturate<T>(attributes.beta());
      return make_map<T, T>(operands, [=](T x) { return std::min(std::max(x, low), high); });
    }
    default: return nullptr;
  }
}

std::unique_ptr<Step> make_unary(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_Unary();
  require_arity(operands, 1, 1);
  const auto& source = *operands.inputs[0];
  const auto& target = *operands.outputs[0];
  require(operands, source.num_elements() == target.num_elements(), "input and output differ");
  require_one_scale(operands);
  const auto function = attributes.function();
  require(operands, function <= UnaryFunction::MAX, "its function is unknown");
  if (function == UnaryFunction::is_nan) {
    require(operands, source.type == Type::float32 && target.type == Type::boolean,
            "its input must be float32 and its output boolean");
    return make_map<float, bool>(operands, [](float x) { return std::isnan(x); });
  }
  require(operands, source.type == target.type, "input and output differ in type");
  if (function == UnaryFunction::logical_not) {
    require(operands, source.type == Type::boolean, "its inputs must be boolean");
    return make_map<std::uint8_t, std::uint8_t>(
        operands, [](std::uint8_t x) { return static_cast<std::uint8_t>(x == 0); });
  }
  switch (source.type) {
    case Type::float32: {
      std::unique_ptr<Step> step;
      with_function(function, attributes.alpha(), attributes.beta(),
                    [&](auto f) { step = make_map<float, float>(operands, f); });
      return step;
    }
    case Type::int8:
      return source.is_quantised() ? make_table<std::int8_t>(operands, attributes) : nullptr;
    case Type::uint8:
      return source.is_quantised() ? make_table<std::uint8_t>(operands, attributes) : nullptr;
    case Type::int32: return make_of_integers<std::int32_t>(operands, attributes);
    case Type::int64: return make_of_integers<std::int64_t>(operands, attributes);
    default: return nullptr;
  }
}

const Registration registered{program::Operator::Unary, make_unary};

}  // namespace

}  // namespace arenite
