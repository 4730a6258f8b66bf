// Functions of two numbers, shapes broadcast.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/broadcast.hpp"
#include "kernels/parallel.hpp"
#include "kernels/processor.hpp"
#include "kernels/quantised.hpp"
#include "kernels/wrapping.hpp"
#include "registry.hpp"
#include "steps/by_rows.hpp"

namespace arenite {

namespace {

using program::BinaryFunction;
using program::Type;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Two arrays that are broadcast to a third, from where they begin.
template <typename Source, typename Target>
struct Walk {
  const Broadcast<2>& broadcast;
  const Source* one;
  const Source* other;
  Target* target;
};

// Makes elements [first, first + count) of what is one run, or as many of the rows of the walk.
template <typename Source, typename Target, typename Function>
__attribute__((always_inline)) inline void make_part(const Walk<Source, Target>& walk,
                                                     std::size_t first, std::size_t count,
                                                     Function function) {
  const auto& inner = walk.broadcast.inner;
  const bool is_one_run = walk.broadcast.num_rows == 1;
  const std::size_t length = is_one_run ? count : inner.length;
  const std::size_t num_rows = is_one_run ? 1 : count;
  for (std::size_t row = 0; row < num_rows; ++row) {
    const std::size_t skipped = is_one_run ? first : 0;
    const auto starts = walk.broadcast.starts(is_one_run ? 0 : first + row);
    const Source* one = walk.one + starts[0] + skipped * inner.strides[0];
    const Source* other = walk.other + starts[1] + skipped * inner.strides[1];
    Target* target = walk.target + (is_one_run ? skipped : (first + row) * length);
    if (inner.strides[0] == 0) {
      const Source value = *one;
#pragma GCC ivdep
      for (std::size_t i = 0; i < length; ++i) {
        target[i] = function(value, other[i]);
      }
    } else if (inner.strides[1] == 0) {
      const Source value = *other;
#pragma GCC ivdep
      for (std::size_t i = 0; i < length; ++i) {
        target[i] = function(one[i], value);
      }
    } else {
#pragma GCC ivdep
      for (std::size_t i = 0; i < length; ++i) {
        target[i] = function(one[i], other[i]);
      }
    }
  }
}

// The function is a copy: no element written can change it.
template <typename Source, typename Target, typename Function>
using Part = void (*)(const Walk<Source, Target>& walk, std::size_t first, std::size_t count,
                      Function function);

template <typename Source, typename Target, typename Function>
void part_for_any(const Walk<Source, Target>& walk, std::size_t first, std::size_t count,
                  Function function) {
  make_part(walk, first, count, function);
}

template <typename Source, typename Target, typename Function>
ARENITE_FOR_AVX2 void part_for_avx2(const Walk<Source, Target>& walk, std::size_t first,
                                    std::size_t count, Function function) {
  make_part(walk, first, count, function);
}

template <typename Source, typename Target, typename Function>
ARENITE_FOR_AVX512 void part_for_avx512(const Walk<Source, Target>& walk, std::size_t first,
                                        std::size_t count, Function function) {
  make_part(walk, first, count, function);
}

// Compiled for wider vectors where images are made of such elements.
template <typename Source, typename Target, typename Function>
Part<Source, Target, Function> find_part() {
  constexpr bool is_common =
      std::is_same_v<Source, Target> && (std::is_same_v<Source, float> || sizeof(Source) == 1);
  if constexpr (is_common) {
    switch (vectors()) {
      case Vectors::avx512:
        return part_for_avx512<Source, Target, Function>;
      case Vectors::avx2:
        return part_for_avx2<Source, Target, Function>;
      default:
        break;
    }
  }
  return part_for_any<Source, Target, Function>;
}

template <typename Source, typename Target, typename Function>
class BinaryStep final : public Step {
 public:
  BinaryStep(const Operands& operands, Function function)
      : broadcast_(operands),
        rows_(operands),
        lies_apart_(lie_apart(operands)),
        one_(operands.inputs[0]->as<Source>()),
        other_(operands.inputs[1]->as<Source>()),
        target_(operands.outputs[0]->as<Target>()),
        result_(rows_.has_rows() ? as_rows<Target>(*operands.outputs[0]) : Image<Target>{}),
        function_(function),
        part_(find_part<Source, Target, Function>()),
        threads_(operands.threads) {}

  void run() override {
    if (lies_apart_) {
      run_rows({0, result_.rows});
      return;
    }
    make({broadcast_, one_, other_, target_});
  }

  bool makes_rows() const override { return rows_.has_rows(); }
  bool finds_rows(std::size_t input) const override {
    return rows_.has_rows() && rows_.follows(input);
  }
  void run_rows(RowRange rows) override {
    parallel(threads_, rows.count, 8 * result_.row_stride,
             [&](std::size_t first, std::size_t count) {
               first += rows.first;
               for (std::size_t row = first; row < first + count; ++row) {
                 const Walk<Source, Target> walk{rows_.inside(), rows_.row(one_, 0, row),
                                                 rows_.row(other_, 1, row), result_.row(row)};
                 part_(walk, 0, size(rows_.inside()), function_);
               }
             });
  }

  const char* backend() const override { return "arenite"; }

 private:
  // Elements of what is one run, or rows.
  static std::size_t size(const Broadcast<2>& broadcast) {
    return broadcast.num_rows == 1 ? broadcast.inner.length : broadcast.num_rows;
  }

  void make(const Walk<Source, Target>& walk) const {
    const std::size_t cost = walk.broadcast.num_rows == 1 ? 8 : 8 * walk.broadcast.inner.length;
    parallel(threads_, size(walk.broadcast), cost,
             [this, &walk](std::size_t first, std::size_t count) {
               part_(walk, first, count, function_);
             });
  }

  Broadcast<2> broadcast_;
  RowBroadcast<2> rows_;
  bool lies_apart_;
  const Source* one_;
  const Source* other_;
  Target* target_;
  Image<Target> result_;
  Function function_;
  Part<Source, Target, Function> part_;
  pthreadpool_t threads_;
};

template <typename Source, typename Target, typename Function>
std::unique_ptr<Step> make_elementwise(const Operands& operands, Function function) {
  return std::make_unique<BinaryStep<Source, Target, Function>>(operands, function);
}

template <typename T>
T divided(T a, T b) {
  if (b == 0) {
    return 0;
  }
  return b == -1 ? difference(T{0}, a) : a / b;
}

template <typename T>
T remainder(T a, T b) {  // of the sign of b
  if (b == 0 || b == -1) {
    return 0;
  }
  const T rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

template <typename T>
std::unique_ptr<Step> make_comparison(const Operands& operands, BinaryFunction function) {
  switch (function) {
    case BinaryFunction::equal:
      return make_elementwise<T, bool>(operands, [](T a, T b) { return a == b; });
    case BinaryFunction::not_equal:
      return make_elementwise<T, bool>(operands, [](T a, T b) { return a != b; });
    case BinaryFunction::less:
      return make_elementwise<T, bool>(operands, [](T a, T b) { return a < b; });
    case BinaryFunction::less_equal:
      return make_elementwise<T, bool>(operands, [](T a, T b) { return a <= b; });
    case BinaryFunction::greater:
      return make_elementwise<T, bool>(operands, [](T a, T b) { return a > b; });
    case BinaryFunction::greater_equal:
      return make_elementwise<T, bool>(operands, [](T a, T b) { return a >= b; });
    default:
      return nullptr;
  }
}

// Calls use(f) with the function of that name on two numbers.
template <typename Use>
void with_function(BinaryFunction function, const Use& use) {
  switch (function) {
    case BinaryFunction::add:
      return use([](float a, float b) { return a + b; });
    case BinaryFunction::subtract:
      return use([](float a, float b) { return a - b; });
    case BinaryFunction::multiply:
      return use([](float a, float b) { return a * b; });
    case BinaryFunction::divide:
      return use([](float a, float b) { return a / b; });
    case BinaryFunction::maximum:
      return use([](float a, float b) { return a > b ? a : b; });
    case BinaryFunction::minimum:
      return use([](float a, float b) { return a < b ? a : b; });
    case BinaryFunction::squared_difference:
      return use([](float a, float b) { return (a - b) * (a - b); });
    case BinaryFunction::power:
      return use([](float a, float b) { return std::pow(a, b); });
    case BinaryFunction::prelu:
      return use([](float a, float b) { return a < 0 ? a * b : a; });
    case BinaryFunction::modulus:
      return use([](float a, float b) { return a - b * std::floor(a / b); });
    case BinaryFunction::floor_divide:
      return use([](float a, float b) { return std::floor(a / b); });
    default:
      return;
  }
}

// The same on two integers; none leaves what it makes undefined.
template <typename T, typename Use>
void with_function_of_integers(BinaryFunction function, const Use& use) {
  switch (function) {
    case BinaryFunction::add:
      return use([](T a, T b) { return sum(a, b); });
    case BinaryFunction::subtract:
      return use([](T a, T b) { return difference(a, b); });
    case BinaryFunction::multiply:
      return use([](T a, T b) { return product(a, b); });
    case BinaryFunction::divide:
      return use([](T a, T b) { return divided(a, b); });
    case BinaryFunction::maximum:
      return use([](T a, T b) { return a > b ? a : b; });
    case BinaryFunction::minimum:
      return use([](T a, T b) { return a < b ? a : b; });
    case BinaryFunction::modulus:
      return use([](T a, T b) { return remainder(a, b); });
    case BinaryFunction::floor_divide:
      return use(
          [](T a, T b) { return b == 0 ? T{0} : divided(difference(a, remainder(a, b)), b); });
    default:
      return;
  }
}

// Clamps what a function makes, if the step clamps at all.
template <typename T, typename Function>
std::unique_ptr<Step> make_clamped(const Operands& operands, Function function, T min, T max,
                                   bool clamps) {
  if (!clamps) {
    return make_elementwise<T, T>(operands, function);
  }
  return make_elementwise<T, T>(operands, [=](T a, T b) {
    const T value = function(a, b);
    return std::min(std::max(value, min), max);
  });
}

std::unique_ptr<Step> make_of_floats(const Operands& operands, const program::Binary& attributes) {
  std::unique_ptr<Step> step;
  const bool clamps = attributes.min() > -kInfinity || attributes.max() < kInfinity;
  with_function(attributes.function(), [&](auto function) {
    step = make_clamped(operands, function, attributes.min(), attributes.max(), clamps);
  });
  return step;
}

template <typename T>
std::unique_ptr<Step> make_of_integers(const Operands& operands,
                                       const program::Binary& attributes) {
  std::unique_ptr<Step> step;
  const bool clamps = attributes.min() > -kInfinity || attributes.max() < kInfinity;
  with_function_of_integers<T>(attributes.function(), [&](auto function) {
    step = make_clamped(operands, function, saturate<T>(attributes.min()),
                        saturate<T>(attributes.max()), clamps);
  });
  return step;
}

// How a sum of two quantised numbers is made in integers: each is multiplied, and the sum shifted
// back; halves are rounded up.
struct QuantisedSum {
  std::int32_t bias;
  std::int32_t factors[2];
  int shift;
  std::int32_t zero_point;
  std::int32_t min;
  std::int32_t max;

  // Whether factors of 21 bits are good enough, and sums fit 32.
  static bool fits(float one, float other) {
    const float larger = std::max(one, other);
    return larger >= 0x1.0p-10f && larger < 0x1.0p+8f;
  }

  QuantisedSum(const Scale& one, const Scale& other, const Scale& target, bool subtracts) {
    const float ratios[2] = {one.scale / target.scale, other.scale / target.scale};
    shift = 20 - std::ilogb(std::max(ratios[0], ratios[1]));
    for (int i = 0; i < 2; ++i) {
      factors[i] = static_cast<std::int32_t>(std::lrint(std::ldexp(ratios[i], shift)));
    }
    factors[1] = subtracts ? -factors[1] : factors[1];
    bias = (1 << (shift - 1)) - factors[0] * one.zero_point - factors[1] * other.zero_point;
    zero_point = target.zero_point;
  }

  template <typename T>
  T of(T a, T b) const {
    const std::int32_t sum = bias + a * factors[0] + b * factors[1];
    return static_cast<T>(std::min(std::max((sum >> shift) + zero_point, min), max));
  }
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
  return make_elementwise<T, T>(operands, [=](T a, T b) { return sum.of(a, b); });
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
  return make_elementwise<T, T>(operands, [=](T a, T b) {
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
  if (name == BinaryFunction::multiply) {
    return make_quantised_product<T>(operands, attributes);
  }
  const float min = attributes.min();
  const float max = attributes.max();
  std::unique_ptr<Step> step;
  with_function(name, [&](auto function) {
    step = make_elementwise<T, T>(operands, [=](T a, T b) {
      const float value = function(one.dequantise(a), other.dequantise(b));
      return target.template quantise<T>(std::min(std::max(value, min), max));
    });
  });
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
    default:
      return nullptr;
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
    require(operands, made == Type::boolean, "it makes booleans");
    return make_logical(operands, function);
  }
  if (made == Type::boolean) {
    switch (type) {
      case Type::float32:
        return make_comparison<float>(operands, function);
      case Type::int32:
        return make_comparison<std::int32_t>(operands, function);
      case Type::int64:
        return make_comparison<std::int64_t>(operands, function);
      default:
        return nullptr;
    }
  }
  require(operands, made == type, "input and output differ in type");
  switch (type) {
    case Type::float32:
      return make_of_floats(operands, attributes);
    case Type::int8:
      return make_of_quantised<std::int8_t>(operands, attributes);
    case Type::uint8:
      return make_of_quantised<std::uint8_t>(operands, attributes);
    case Type::int32:
      return make_of_integers<std::int32_t>(operands, attributes);
    case Type::int64:
      return make_of_integers<std::int64_t>(operands, attributes);
    default:
      return nullptr;
  }
}

const Registration registered{program::Operator::Binary, make_binary};

}  // namespace

}  // namespace arenite
