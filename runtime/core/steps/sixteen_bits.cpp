// Steps of quantised integers of 16 bits that LiteRT has kernels of their own for. They give what
// its reference kernels give, to the bit.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "kernels/fixed_point.hpp"
#include "kernels/parallel.hpp"
#include "kernels/quantised.hpp"
#include "registry.hpp"
#include "sliding_window.hpp"
#include "steps/binary_step.hpp"
#include "steps/element_step.hpp"
#include "steps/images.hpp"
#include "steps/rows.hpp"

namespace arenite {

namespace {

using program::BinaryFunction;
using program::Type;
using program::UnaryFunction;
using Int = std::int16_t;

bool has_16_bits(const Operands& operands) {
  return !operands.inputs.empty() && operands.inputs[0] != nullptr && !operands.outputs.empty() &&
         operands.inputs[0]->type == Type::int16 && operands.outputs[0]->type == Type::int16 &&
         operands.inputs[0]->is_quantised() && operands.outputs[0]->is_quantised();
}

Multiplier multiplier(const Operands& operands, double number) {
  const Multiplier found = Multiplier::of(number);
  require(operands, found.fits(), "its scales are too far apart");
  return found;
}

// The integers that a result is clamped to.
struct Bounds {
  Bounds(const Operands& operands, float low, float high) {
    require(operands, low <= high, "its min is above its max");
    min = quantised_bound<Int>(low, *operands.outputs[0]);
    max = quantised_bound<Int>(high, *operands.outputs[0]);
  }

  Int operator()(std::int64_t value) const {
    return static_cast<Int>(std::clamp<std::int64_t>(value, min, max));
  }

  std::int64_t min;
  std::int64_t max;
};

// Functions of two numbers.

template <typename Function>
std::unique_ptr<Step> of_pairs(const Operands& operands, Function function) {
  return std::make_unique<BinaryStep<Copies::one, Int, Int, Function>>(operands, function);
}

std::unique_ptr<Step> make_sum(const Operands& operands, const Bounds& bounds, bool subtracts) {
  constexpr int kShift = 15;  // of the terms, to the left
  const auto& one = *operands.inputs[0];
  const auto& other = *operands.inputs[1];
  const auto& result = *operands.outputs[0];
  const double twice = 2 * std::max(one.scales[0], other.scales[0]);
  const Multiplier factors[] = {multiplier(operands, one.scales[0] / twice),
                                multiplier(operands, other.scales[0] / twice)};
  const Multiplier last = multiplier(operands, twice / ((1 << kShift) * result.scales[0]));
  const std::int32_t zeros[] = {one.zero_point, other.zero_point, result.zero_point};
  return of_pairs(operands, [=](Int a, Int b) {
    const std::int32_t first = factors[0].times((a - zeros[0]) * (1 << kShift));
    const std::int32_t second = factors[1].times((b - zeros[1]) * (1 << kShift));
    const std::int32_t total = subtracts ? first - second : first + second;
    return bounds(std::int64_t{last.times(total)} + zeros[2]);
  });
}

std::unique_ptr<Step> make_binary(const Operands& operands) {
  if (!has_16_bits(operands)) { return nullptr; }
  require_arity(operands, 2, 2);
  const auto& one = *operands.inputs[0];
  const auto& other = *operands.inputs[1];
  const auto& result = *operands.outputs[0];
  require(operands, other.type == Type::int16 && other.is_quantised(), "the inputs differ in type");
  require_one_scale(operands);
  const auto& attributes = *operands.step.kernel_as_Binary();
  const Bounds bounds(operands, attributes.min(), attributes.max());
  const bool are_alike = one.scales == other.scales && one.scales == result.scales &&
                         one.zero_point == other.zero_point && one.zero_point == result.zero_point;
  switch (attributes.function()) {
    case BinaryFunction::add: return make_sum(operands, bounds, false);
    case BinaryFunction::subtract: return make_sum(operands, bounds, true);
    case BinaryFunction::multiply: {
      require(operands, one.zero_point == 0 && other.zero_point == 0 && result.zero_point == 0,
              "16-bit integers must have a zero point of 0");
      const Multiplier factor =
          multiplier(operands, one.scales[0] * other.scales[0] / result.scales[0]);
      return of_pairs(operands, [=](Int a, Int b) {
        return bounds(factor.times(std::int32_t{a} * std::int32_t{b}));
      });
    }
    case BinaryFunction::maximum:
      return are_alike ? of_pairs(operands, [=](Int a, Int b) { return bounds(std::max(a, b)); })
                       : nullptr;
    case BinaryFunction::minimum:
      return are_alike ? of_pairs(operands, [=](Int a, Int b) { return bounds(std::min(a, b)); })
                       : nullptr;
    default: return nullptr;
  }
}

// Functions of one number.

template <typename Function>
class ElementsStep final : public ElementStep<Int, Int> {
 public:
  ElementsStep(const Operands& operands, Function function)
      : ElementStep<Int, Int>(operands), function_(function) {}

 private:
  void map(const Int* source, Int* target, std::size_t count) const override {
    for (std::size_t i = 0; i < count; ++i) { target[i] = function_(source[i]); }
  }

  Function function_;
};

template <typename Function>
std::unique_ptr<Step> of_elements(const Operands& operands, Function function) {
  return std::make_unique<ElementsStep<Function>>(operands, function);
}

// The logistic function at multiples of 1/24, with 16 fractional bits. Numbers between them are
// found on lines, which run below the function: half of the largest distance is added. The last is
// what larger numbers have.
std::array<std::uint16_t, 256> logistic_table() {
  constexpr double kStep = 1.0 / 24;
  std::array<std::uint16_t, 256> table;
  for (std::size_t i = 0; i < table.size(); ++i) {
    const double y = 1 / (1 + std::exp(-kStep * static_cast<double>(i)));
    const double raised = y + kStep * kStep / 16 * y * (1 - y) * (2 * y - 1);
    table[i] = static_cast<std::uint16_t>(std::floor(raised * 65536 + 0.5));
  }
  table.back() = 65535;
  return table;
}

// Rescales a number to multiples of 1 / (3 * 4096): x * factor / 2^shift, halves rounded up.
struct TableScale {
  TableScale(const Operands& operands, std::int32_t most_left) {
    const float scale = operands.inputs[0]->scales[0];
    const float power = std::log(scale) * (1.0f / std::log(2.0f));
    const float left = std::round(power) + 12;
    if (std::abs(power - std::round(power)) < 1e-3f && left >= 0 &&
        left <= static_cast<float>(most_left)) {
      factor = 3 << static_cast<int>(left);
      return;
    }
    double number = scale * 4096.0 * 3.0;
    for (; number <= 32767.0 / 2.0 && shift <= 30; ++shift) { number *= 2.0; }
    require(operands, number < 65536, "its scale is too large");
    factor = static_cast<std::int32_t>(number);
  }

  std::int32_t operator()(Int x) const {
    return (x * factor + (shift > 0 ? std::int32_t{1} << (shift - 1) : 0)) >> shift;
  }

  std::int32_t factor = 0;
  int shift = 0;
};

std::unique_ptr<Step> make_logistic(const Operands& operands) {
  const TableScale rescale(operands, 0);
  return of_elements(operands, [rescale, table = logistic_table()](Int x) {
    const std::int32_t scaled = rescale(x);
    const auto magnitude = static_cast<std::uint32_t>(std::abs(scaled));
    const std::uint32_t place = magnitude >> 9;
    std::uint32_t value = 0x7fffu << 10;
    if (place < 255) {
      value = (std::uint32_t{table[place]} << 9) +
              (magnitude & 0x1ff) * (std::uint32_t{table[place + 1]} - table[place]);
    }
    value = scaled >= 0 ? value + (1 << 9) : (1u << 25) - value + (1 << 9) - 1;
    return static_cast<Int>(value >> 10);
  });
}

std::unique_ptr<Step> make_tanh(const Operands& operands) {
  const TableScale rescale(operands, 1);
  return of_elements(operands, [rescale, table = logistic_table()](Int x) {
    const std::int32_t scaled = rescale(x);
    const auto magnitude = static_cast<std::uint32_t>(std::abs(scaled));
    const std::uint32_t place = magnitude >> 8;
    std::int32_t value = 0xffff << 8;
    if (place < 255) {
      const std::uint32_t rise = std::uint32_t{table[place + 1]} - table[place];
      value =
          static_cast<std::int32_t>((std::uint32_t{table[place]} << 8) + (magnitude & 0xff) * rise);
    }
    value = scaled >= 0 ? value - (1 << 23) + (1 << 7) : (1 << 23) - value + (1 << 7) - 1;
    return static_cast<Int>(value >> 8);
  });
}

std::unique_ptr<Step> make_unary(const Operands& operands) {
  if (!has_16_bits(operands)) { return nullptr; }
  require_arity(operands, 1, 1);
  const auto& source = *operands.inputs[0];
  const auto& result = *operands.outputs[0];
  require(operands, source.num_elements() == result.num_elements(), "input and output differ");
  require_one_scale(operands);
  const auto& attributes = *operands.step.kernel_as_Unary();
  const auto function = attributes.function();
  require(operands, source.zero_point == 0 && result.zero_point == 0,
          "16-bit integers must have a zero point of 0");
  const float alpha = attributes.alpha();
  switch (function) {
    case UnaryFunction::sigmoid:
    case UnaryFunction::hyperbolic_tangent:
      require(operands, result.scales[0] == 0x1.0p-15f, "its output must have a scale of 1/32768");
      return function == UnaryFunction::sigmoid ? make_logistic(operands) : make_tanh(operands);
    case UnaryFunction::clamp: {
      const Bounds bounds(operands, alpha, attributes.beta());
      const Multiplier factor = multiplier(operands, source.scales[0] / result.scales[0]);
      return of_elements(operands, [=](Int x) { return bounds(factor.times(std::int32_t{x})); });
    }
    case UnaryFunction::leaky_relu: {
      const bool is_negative = alpha < 0;
      const Multiplier above = multiplier(operands, source.scales[0] / result.scales[0]);
      const Multiplier below =
          alpha == 0 ? Multiplier{}
                     : multiplier(operands, source.scales[0] * std::abs(alpha) / result.scales[0]);
      return of_elements(operands, [=](Int x) {
        const std::int64_t value = (x >= 0 ? above : below).times(std::int32_t{x});
        const std::int64_t kept = x < 0 && is_negative ? -value : value;
        return static_cast<Int>(std::clamp<std::int64_t>(kept, -32768, 32767));
      });
    }
    default: return nullptr;
  }
}

// Softmax.

// A function of integers of 16 bits as 512 lines.
class Lines {
 public:
  // Of inputs from `least` on, `span` in all, to numbers from -1 to 1.
  template <typename Function>
  Lines(double least, double span, const Function& function) {
    constexpr double kRange = 65535.0;
    constexpr double kSteps = 512;
    const double step = span / kSteps;
    const double low = 2.0 / kRange * -32768;
    const double high = 2.0 / kRange * 32767;
    const double inverse = 65536 / (high - low);
    const auto clamped = [](double value) {
      return static_cast<Int>(std::min(std::max(value, -32768.0), 32767.0));
    };
    for (std::size_t i = 0; i + 1 < places_.size(); ++i) {
      const double at = least + static_cast<double>(i) * step;
      const double value = std::round(function(at) * inverse);
      const double next = function(least + static_cast<double>(i + 1) * step) * inverse;
      const double middle = std::round((next + value) / 2);
      const double error = middle - std::round(function(at + step / 2) * inverse);
      places_[i] = clamped(value - std::round(error / 2));
    }
    places_.back() = clamped(std::round(function(least + span) * inverse));
  }

  std::int32_t operator()(std::int32_t value) const {
    const auto place = static_cast<std::size_t>(256 + (value >> 7));
    // A difference of 16 bits, as the reference has it.
    const auto slope = static_cast<Int>(places_[place + 1] - places_[place]);
    return static_cast<Int>(places_[place] + ((slope * (value & 0x7f) + 64) >> 7));
  }

 private:
  std::array<Int, 513> places_;
};

std::unique_ptr<Step> make_softmax(const Operands& operands) {
  if (!has_16_bits(operands)) { return nullptr; }
  require_arity(operands, 1, 1);
  const auto& attributes = *operands.step.kernel_as_Softmax();
  const auto& source = *operands.inputs[0];
  require(operands, source.rank() > 0 && source.shape == operands.outputs[0]->shape,
          "input and output differ");
  require_one_scale(operands);
  require(operands, !attributes.logarithm(), "a logarithm of 16-bit integers is unsupported");
  const std::size_t length = source.shape.back();
  require(operands, length < (1u << 16), "its rows are too long for integers");
  const Multiplier factor =
      multiplier(operands, source.scales[0] * attributes.beta() / (10.0 / 65535.0));
  const Lines exponential(-10.0, 10.0, [](double x) { return std::exp(x); });
  const Lines reciprocal(0.0, 1.0, [](double x) { return 1.0 / (1.0 + x); });
  return make_rows<Int>(operands, length, [=](const Int* from, Int* to, std::size_t count) {
    const std::int32_t top = *std::max_element(from, from + count);
    std::int32_t total = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t place = std::int64_t{factor.times(from[i] - top)} + 32767;
      to[i] = static_cast<Int>(
          exponential(static_cast<std::int32_t>(std::clamp<std::int64_t>(place, -32768, 32767))));
      total += to[i];
    }
    if (total <= 0) { return; }
    const int headroom = __builtin_clz(static_cast<unsigned>(total));
    const auto shifted =
        static_cast<std::int32_t>(((std::int64_t{total} << (headroom - 1)) + (1 << 13)) >> 14);
    const std::int32_t scale =
        reciprocal(std::clamp(shifted - (1 << 15) - (1 << 16), -32768, 32767));
    const int shift = 31 - headroom;
    const std::int64_t half = std::int64_t{1} << (shift - 1);
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t value = (std::int64_t{to[i]} * scale + half) >> shift;
      to[i] = static_cast<Int>(std::clamp<std::int64_t>(value, 0, 32767));
    }
  });
}

// Pools.

class PoolStep final : public Step {
 public:
  PoolStep(const Operands& operands, const SlidingWindow& window, bool is_average,
           const Bounds& bounds)
      : window_(window),
        is_average_(is_average),
        bounds_(bounds),
        source_(first_image<const Int>(*operands.inputs[0])),
        result_(first_image<Int>(*operands.outputs[0])),
        num_images_(operands.inputs[0]->shape[0]),
        threads_(operands.threads) {}

  void run() override {
    const std::size_t rows = num_images_ * result_.rows;
    const std::size_t cost = window_.kernel[0] * window_.kernel[1] * sizeof(Int);
    parallel(threads_, rows, cost * result_.row_stride,
             [this](std::size_t first, std::size_t count) {
               for (std::size_t row = first; row < first + count; ++row) {
                 make(row / result_.rows, row % result_.rows);
               }
             });
  }

 private:
  void make(std::size_t image, std::size_t row) const {
    const Int* source = source_.data + image * source_.rows * source_.row_stride;
    Int* to = result_.data + (image * result_.rows + row) * result_.row_stride;
    const WindowSpan rows = window_span(window_, 0, row, source_.rows);
    for (std::size_t column = 0; column < result_.columns; ++column) {
      const WindowSpan columns = window_span(window_, 1, column, source_.columns);
      const auto count = static_cast<std::int64_t>(rows.inside() * columns.inside());
      for (std::size_t channel = 0; channel < source_.channels; ++channel) {
        std::int64_t total = 0;
        std::int64_t largest = -32768;
        for (std::size_t i = rows.first; i < rows.last; ++i) {
          const auto y = static_cast<std::size_t>(
              rows.start + static_cast<std::int64_t>(i * window_.dilations[0]));
          for (std::size_t k = columns.first; k < columns.last; ++k) {
            const auto x = static_cast<std::size_t>(
                columns.start + static_cast<std::int64_t>(k * window_.dilations[1]));
            const Int value = source[y * source_.row_stride + x * source_.pixel_stride + channel];
            total += value;
            largest = std::max<std::int64_t>(largest, value);
          }
        }
        if (is_average_) {
          const std::int64_t half = total > 0 ? count / 2 : -(count / 2);
          largest = count == 0 ? 0 : (total + half) / count;
        }
        *to++ = bounds_(largest);
      }
    }
  }

  SlidingWindow window_;
  bool is_average_;
  Bounds bounds_;
  Image<const Int> source_;
  Image<Int> result_;
  std::size_t num_images_;
  pthreadpool_t threads_;
};

std::unique_ptr<Step> make_pool(const Operands& operands) {
  if (!has_16_bits(operands)) { return nullptr; }
  require_arity(operands, 1, 1);
  const auto& attributes = *operands.step.kernel_as_Pool2D();
  const auto& source = *operands.inputs[0];
  const auto& result = *operands.outputs[0];
  if (source.type != result.type) { return nullptr; }  // sums of bytes
  require(operands, attributes.kind() <= program::PoolKind::MAX, "its kind is unknown");
  const SlidingWindow window = stated_window(operands, attributes, attributes.window(), 1);
  require_images(operands, window);
  require(operands, source.shape[3] == result.shape[3], "the channels differ");
  require_one_scale(operands);
  require(operands, source.scales == result.scales && source.zero_point == result.zero_point,
          "input and output differ in scale");
  require(operands, !attributes.count_padding(), "16-bit integers cannot count padding");
  return std::make_unique<PoolStep>(operands, window,
                                    attributes.kind() == program::PoolKind::average,
                                    Bounds(operands, attributes.min(), attributes.max()));
}

// Changes of scale, which a step asks for: other conversions are those of numbers.

template <typename Source, typename Target>
class RescaleStep final : public ElementStep<Source, Target> {
 public:
  RescaleStep(const Operands& operands, const Multiplier& factor)
      : ElementStep<Source, Target>(operands),
        factor_(factor),
        from_(operands.inputs[0]->zero_point),
        to_(operands.outputs[0]->zero_point) {}

 private:
  void map(const Source* source, Target* target, std::size_t count) const override {
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t value = std::int64_t{factor_.times(source[i] - from_)} + to_;
      target[i] = static_cast<Target>(std::clamp<std::int64_t>(
          value, std::numeric_limits<Target>::min(), std::numeric_limits<Target>::max()));
    }
  }

  Multiplier factor_;
  std::int32_t from_;
  std::int64_t to_;
};

std::unique_ptr<Step> make_rescaled(const Operands& operands) {
  if (!operands.step.kernel_as_Convert()->rescales()) { return nullptr; }
  require_arity(operands, 1, 1);
  const auto& source = *operands.inputs[0];
  const auto& target = *operands.outputs[0];
  require(operands, source.num_elements() == target.num_elements(), "input and output differ");
  require(operands, source.scales.size() == 1 && target.scales.size() == 1,
          "its input and output must have one scale each");
  const Multiplier factor =
      multiplier(operands, static_cast<double>(source.scales[0]) / target.scales[0]);
  std::unique_ptr<Step> step;
  const auto from = [&](auto a, auto b) {
    step = std::make_unique<RescaleStep<decltype(a), decltype(b)>>(operands, factor);
  };
  const auto to = [&](auto a) {
    switch (target.type) {
      case Type::int8: return from(a, std::int8_t{});
      case Type::uint8: return from(a, std::uint8_t{});
      case Type::int16: return from(a, std::int16_t{});
      case Type::int32: return from(a, std::int32_t{});
      default: return;
    }
  };
  switch (source.type) {
    case Type::int8: to(std::int8_t{}); break;
    case Type::uint8: to(std::uint8_t{}); break;
    case Type::int16: to(std::int16_t{}); break;
    default: break;
  }
  return step;
}

const Registration registered[] = {
    {program::Operator::Binary, make_binary, KernelSet::plain_integers},
    {program::Operator::Unary, make_unary, KernelSet::plain_integers},
    {program::Operator::Softmax, make_softmax, KernelSet::plain_integers},
    {program::Operator::Pool2D, make_pool, KernelSet::plain_integers},
    {program::Operator::Convert, make_rescaled, KernelSet::plain_integers},
};

}  // namespace

}  // namespace arenite
