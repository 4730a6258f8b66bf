// Conversions between element types; quantises and dequantises.
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>

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

template <typename Source, typename Target>
class ConvertStep final : public ElementStep<Source, Target> {
 public:
  explicit ConvertStep(const Operands& operands)
      : ElementStep<Source, Target>(operands),
        in_(Scale::of(*operands.inputs[0])),
        out_(Scale::of(*operands.outputs[0])),
        quantises_(operands.outputs[0]->is_quantised()),
        is_plain_(!operands.inputs[0]->is_quantised() && !quantises_) {
    if constexpr (kIsTable) {
      for (std::size_t bits = 0; bits < table_.size(); ++bits) {
        table_[bits] = one(static_cast<Source>(static_cast<std::uint8_t>(bits)));
      }
    }
  }

 private:
  // A conversion of 8-bit elements is a table of 256 entries.
  static constexpr bool kIsTable = sizeof(Source) == 1 && !std::is_same_v<Source, bool>;

  void map(const Source* source, Target* target, std::size_t count) const override {
    for (std::size_t i = 0; i < count; ++i) {
      if constexpr (kIsTable) {
        target[i] = table_[static_cast<std::uint8_t>(source[i])];
      } else {
        target[i] = one(source[i]);
      }
    }
  }

  Target one(Source value) const {
    constexpr bool are_integers = std::is_integral_v<Source> && std::is_integral_v<Target>;
    if constexpr (are_integers) {
      if (is_plain_) { return static_cast<Target>(value); }
    }
    if constexpr (std::is_same_v<Source, double> || std::is_same_v<Target, double>) {
      return of_double(value);
    } else {
      return to_element<Target>(to_float(value, in_), out_, quantises_);
    }
  }

  // Of 64-bit floats, which stand for themselves.
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

  Scale in_;
  Scale out_;
  bool quantises_;
  bool is_plain_;
  std::array<Target, kIsTable ? 256 : 0> table_{};
};

std::unique_ptr<Step> make_convert(const Operands& operands) {
  require_arity(operands, 1, 1);
  const auto& source = *operands.inputs[0];
  const auto& target = *operands.outputs[0];
  require(operands, source.num_elements() == target.num_elements(), "input and output differ");
  require(operands, source.scales.size() <= 1 && target.scales.size() <= 1,
          "it has a scale for each channel");
  std::unique_ptr<Step> step;
  with_type(source.type, [&](auto from) {
    with_type(target.type, [&](auto to) {
      step =
          std::make_unique<ConvertStep<typename decltype(from)::type, typename decltype(to)::type>>(
              operands);
    });
  });
  return step;
}

const Registration registered{program::Operator::Convert, make_convert};

}  // namespace

}  // namespace arenite
