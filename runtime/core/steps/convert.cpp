// Conversions between element types; quantises and dequantises.
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/byte_table.hpp"
#include "kernels/half.hpp"
#include "kernels/quantised.hpp"
#include "operand_checks.hpp"
#include "registry.hpp"
#include "steps/element_step.hpp"

namespace arenite {

namespace {

using program::Type;

template <typename T>
struct Tag {
  using type = T;
};

template <typename Use>
bool with_type(Type type, const Use& use) {
  switch (type) {
    case Type::float32: return use(Tag<float>{}), true;
    case Type::float16: return use(Tag<Half>{}), true;
    case Type::int8: return use(Tag<std::int8_t>{}), true;
    case Type::uint8: return use(Tag<std::uint8_t>{}), true;
    case Type::int16: return use(Tag<std::int16_t>{}), true;
    case Type::int32: return use(Tag<std::int32_t>{}), true;
    case Type::int64: return use(Tag<std::int64_t>{}), true;
    case Type::boolean: return use(Tag<bool>{}), true;
    case Type::float64: return use(Tag<double>{}), true;
    case Type::bfloat16: break;
  }
  return false;
}

template <typename Source>
float to_float(Source value, const Scale& scale) {
  if constexpr (std::is_same_v<Source, float> || std::is_same_v<Source, bool>) {
    return static_cast<float>(value);
  } else if constexpr (std::is_same_v<Source, Half>) {
    return widened(value);
  } else if constexpr (sizeof(Source) == 8) {
    return static_cast<float>(value);
  } else {
    return scale.dequantise(value);
  }
}

template <typename Target>
Target to_element(float value, const Scale& scale, bool quantises) {
  if constexpr (std::is_same_v<Target, float>) {
    return value;
  } else if constexpr (std::is_same_v<Target, bool>) {
    return value != 0;
  } else if constexpr (std::is_same_v<Target, Half>) {
    return narrowed(value);
  } else if constexpr (sizeof(Target) <= 2) {
    return quantises ? scale.quantise<Target>(value) : saturate<Target>(value);
  } else if constexpr (sizeof(Target) == 4) {
    return saturate<Target>(quantises ? std::nearbyint(value / scale.scale) +
                                            static_cast<float>(scale.zero_point)
                                      : value);
  } else {
    return saturate<Target>(value);
  }
}

// What a conversion knows beside the types.
struct Conversion {
  Scale in;
  Scale out;
  bool quantises;
  bool is_plain;  // of integers that stand for themselves

  template <typename Target, typename Source>
  Target of(Source value) const {
    constexpr bool are_integers = std::is_integral_v<Source> && std::is_integral_v<Target>;
    if constexpr (are_integers) {
      if (is_plain) { return static_cast<Target>(value); }
    }
    if constexpr (std::is_same_v<Source, double> || std::is_same_v<Target, double>) {
      return of_double<Target>(value);
    } else {
      return to_element<Target>(to_float(value, in), out, quantises);
    }
  }

 private:
  // Of 64-bit floats, which stand for themselves.
  template <typename Target, typename Source>
  static Target of_double(Source value) {
    if constexpr (std::is_same_v<Source, Half>) {
      return static_cast<Target>(widened(value));
    } else if constexpr (std::is_same_v<Target, Half>) {
      return narrowed(static_cast<float>(value));
    } else if constexpr (std::is_same_v<Target, bool>) {
      return value != 0;
    } else if constexpr (std::is_integral_v<Target>) {
      return saturate<Target>(static_cast<double>(value));
    } else {
      return static_cast<Target>(value);
    }
  }
};

using Convert = void (*)(const Conversion& given, const void* source, void* target,
                         std::size_t count);

template <typename Source, typename Target>
void convert(const Conversion& given, const void* source, void* target, std::size_t count) {
  const Conversion conversion = given;
  const auto* from = static_cast<const Source*>(source);
  auto* to = static_cast<Target*>(target);
  for (std::size_t i = 0; i < count; ++i) { to[i] = conversion.of<Target>(from[i]); }
}

// Of elements of so many bytes, whatever they are.
template <typename Source, typename Target>
class ConvertStep final : public ElementStep<Source, Target> {
 public:
  ConvertStep(const Operands& operands, const Conversion& conversion, Convert convert)
      : ElementStep<Source, Target>(operands), conversion_(conversion), convert_(convert) {}

 private:
  void map(const Source* source, Target* target, std::size_t count) const override {
    convert_(conversion_, source, target, count);
  }

  Conversion conversion_;
  Convert convert_;
};

// A conversion of 8-bit numbers is a table of 256 entries.
template <typename Target>
class TableStep final : public ElementStep<std::uint8_t, Target> {
 public:
  TableStep(const Operands& operands, const Conversion& conversion, Convert of_int16)
      : ElementStep<std::uint8_t, Target>(operands) {
    std::array<std::int16_t, 256> values;
    const bool is_signed = operands.inputs[0]->type == Type::int8;
    for (std::size_t bits = 0; bits < values.size(); ++bits) {
      values[bits] = static_cast<std::int16_t>(is_signed ? static_cast<std::int8_t>(bits)
                                                         : static_cast<std::int16_t>(bits));
    }
    of_int16(conversion, values.data(), table_.data(), values.size());
  }

 private:
  void map(const std::uint8_t* source, Target* target, std::size_t count) const override {
    if constexpr (sizeof(Target) == 1) {
      look_up(table_, source, target, count);
    } else {
      for (std::size_t i = 0; i < count; ++i) { target[i] = table_[source[i]]; }
    }
  }

  std::array<Target, 256> table_;
};

template <std::size_t bytes>
using Bytes = std::conditional_t<
    bytes == 1, std::uint8_t,
    std::conditional_t<bytes == 2, std::uint16_t,
                       std::conditional_t<bytes == 4, std::uint32_t, std::uint64_t>>>;

template <typename Source, typename Target>
std::unique_ptr<Step> make_for(const Operands& operands, const Conversion& conversion) {
  using To = Bytes<sizeof(Target)>;
  if constexpr (sizeof(Source) == 1 && !std::is_same_v<Source, bool>) {
    return std::make_unique<TableStep<To>>(operands, conversion, convert<std::int16_t, Target>);
  } else {
    return std::make_unique<ConvertStep<Bytes<sizeof(Source)>, To>>(operands, conversion,
                                                                    convert<Source, Target>);
  }
}

std::unique_ptr<Step> make_convert(const Operands& operands) {
  require_arity(operands, 1, 1);
  const auto& source = *operands.inputs[0];
  const auto& target = *operands.outputs[0];
  require(operands, source.num_elements() == target.num_elements(), "input and output differ");
  require(operands, source.scales.size() <= 1 && target.scales.size() <= 1,
          "it has a scale for each channel");
  const Conversion conversion{Scale::of(source), Scale::of(target), target.is_quantised(),
                              !source.is_quantised() && !target.is_quantised()};
  std::unique_ptr<Step> step;
  with_type(source.type, [&](auto from) {
    with_type(target.type, [&](auto to) {
      step = make_for<typename decltype(from)::type, typename decltype(to)::type>(operands,
                                                                                  conversion);
    });
  });
  return step;
}

const Registration registered{program::Operator::Convert, make_convert};

}  // namespace

}  // namespace arenite
