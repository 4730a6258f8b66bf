// Reductions along some axes.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "kernels/fixed_point.hpp"
#include "kernels/parallel.hpp"
#include "kernels/processor.hpp"
#include "kernels/quantised.hpp"
#include "kernels/wrapping.hpp"
#include "operand_checks.hpp"
#include "registry.hpp"
#include "steps/of_type.hpp"
#include "steps/reduce_layout.hpp"
#include "steps/sum_of_images.hpp"

namespace arenite {

namespace {

using program::ReduceFunction;
using program::Type;

// Each function has an initial value, adds an element, joins what was made of some elements and of
// others, and finishes the result. If each result has one element, the output may be the input.
template <typename T, typename Accumulate, typename Join, typename Finish>
class ReduceStep final : public Step {
 public:
  ReduceStep(const Operands& operands, const ReduceLayout& layout, T start, Accumulate accumulate,
             Join join, Finish finish)
      : source_(operands.inputs[0]->as<T>()),
        target_(operands.outputs[0]->as<T>()),
        layout_(layout),
        initial_(start),
        accumulate_(accumulate),
        join_(join),
        finish_(finish),
        threads_(operands.threads) {}

  void run() override {
    const std::size_t cost = layout_.reduced.count() * layout_.run * sizeof(T);
    parallel(threads_, layout_.kept.count(), cost, [this](std::size_t first, std::size_t count) {
      if constexpr (std::is_same_v<T, float>) {
        with_widest_vectors([=] { reduce(first, count); });
      } else {
        reduce(first, count);
      }
    });
  }

 private:
  void reduce(std::size_t first, std::size_t count) const {
    if (!layout_.run_is_kept && layout_.reduced.count() == 1) {
      reduce_rows(first, count);
      return;
    }
    layout_.kept.each_of(first, count, [this](std::size_t index, std::size_t offset) {
      layout_.run_is_kept ? along_rows(index, offset) : across_rows(index, offset);
    });
  }

  void along_rows(std::size_t index, std::size_t start) const {
    const std::size_t run = layout_.run;
    const T* first = source_ + start;
    T* target = target_ + index * run;
    if (layout_.reduced.count() == 1) {
      for (std::size_t i = 0; i < run; ++i) {
        target[i] = finish_(accumulate_(initial_, first[i]));
      }
      return;
    }
    std::fill(target, target + run, initial_);
    layout_.reduced.each([=](std::size_t offset) { accumulate_row(first + offset, target, run); });
    for (std::size_t i = 0; i < run; ++i) { target[i] = finish_(target[i]); }
  }

  void accumulate_row(const T* __restrict source, T* __restrict target, std::size_t run) const {
    for (std::size_t i = 0; i < run; ++i) { target[i] = accumulate_(target[i], source[i]); }
  }

  // Each result is of one run: the runs lie one after the other.
  void reduce_rows(std::size_t first, std::size_t count) const {
    const std::size_t run = layout_.run;
    const T* source = source_ + first * run;
    for (std::size_t i = first; i < first + count; ++i) {
      target_[i] = finish_(accumulated(initial_, source, run));
      source += run;
    }
  }

  void across_rows(std::size_t index, std::size_t start) const {
    const T* first = source_ + start;
    T total = initial_;
    layout_.reduced.each(
        [&](std::size_t offset) { total = accumulated(total, first + offset, layout_.run); });
    target_[index] = finish_(total);
  }

  // Of floats in several lanes, which is quicker and more exact.
  T accumulated(T total, const T* source, std::size_t run) const {
    std::size_t done = 0;
    if constexpr (std::is_same_v<T, float>) {
      constexpr std::size_t kLanes = 16;
      if (run >= 2 * kLanes) {
        float lanes[kLanes];
        for (float& lane : lanes) { lane = initial_; }
        for (; done + kLanes <= run; done += kLanes) {
#pragma GCC unroll 1
          for (std::size_t lane = 0; lane < kLanes; ++lane) {
            lanes[lane] = accumulate_(lanes[lane], source[done + lane]);
          }
        }
        for (const float lane : lanes) { total = join_(total, lane); }
      }
    }
    for (; done < run; ++done) { total = accumulate_(total, source[done]); }
    return total;
  }

  const T* source_;
  T* target_;
  ReduceLayout layout_;
  T initial_;
  Accumulate accumulate_;
  Join join_;
  Finish finish_;
  pthreadpool_t threads_;
};

template <typename T, typename Accumulate, typename Join, typename Finish>
std::unique_ptr<Step> make(const Operands& operands, const ReduceLayout& layout, T start,
                           Accumulate accumulate, Join join, Finish finish) {
  // Networks spend no time on reductions of integers: they are compiled once for all functions.
  using Called = std::conditional_t<std::is_integral_v<T>, T (*)(T, T), Accumulate>;
  using Joined = std::conditional_t<std::is_integral_v<T>, T (*)(T, T), Join>;
  return std::make_unique<ReduceStep<T, Called, Joined, Finish>>(operands, layout, start,
                                                                 accumulate, join, finish);
}

template <typename T>
T quotient(T total, std::size_t count) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(total / static_cast<std::int64_t>(count));
  } else {
    return total / static_cast<T>(count);
  }
}

template <typename T>
std::unique_ptr<Step> make_of(const Operands& operands, ReduceFunction function,
                              const ReduceLayout& layout, std::size_t count) {
  const auto same = [](T x) { return x; };
  const auto add = [](T a, T b) { return sum(a, b); };
  const auto multiply = [](T a, T b) { return product(a, b); };
  // Of a number and one that is none, the number.
  const auto larger = [](T a, T b) { return b > a ? b : a; };
  const auto smaller = [](T a, T b) { return b < a ? b : a; };
  using Limits = std::numeric_limits<T>;
  const T least = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  const T most = Limits::has_infinity ? Limits::infinity() : Limits::max();
  switch (function) {
    case ReduceFunction::sum: return make<T>(operands, layout, T{0}, add, add, same);
    case ReduceFunction::mean:
      return make<T>(operands, layout, T{0}, add, add, [count](T x) { return quotient(x, count); });
    case ReduceFunction::maximum: return make<T>(operands, layout, least, larger, larger, same);
    case ReduceFunction::minimum: return make<T>(operands, layout, most, smaller, smaller, same);
    case ReduceFunction::product: return make<T>(operands, layout, T{1}, multiply, multiply, same);
    case ReduceFunction::l1:
      return make<T>(
          operands, layout, T{0}, [](T a, T b) { return sum(a, magnitude(b)); }, add, same);
    case ReduceFunction::sum_square:
      return make<T>(
          operands, layout, T{0}, [](T a, T b) { return sum(a, product(b, b)); }, add, same);
    default: return nullptr;
  }
}

std::unique_ptr<Step> make_of_floats(const Operands& operands, ReduceFunction function,
                                     const ReduceLayout& layout, std::size_t count) {
  const auto add = [](float a, float b) { return a + b; };
  // log(e^a + e^b), one element after the other: no sum overflows.
  const auto add_powers = [](float a, float b) {
    const float top = a > b ? a : b;  // b if it is no number
    return std::isinf(top) ? top : top + std::log1p(std::exp(std::min(a, b) - top));
  };
  switch (function) {
    case ReduceFunction::l2:
      return make<float>(
          operands, layout, 0.0f, [](float a, float b) { return a + b * b; }, add,
          [](float x) { return std::sqrt(x); });
    case ReduceFunction::log_sum:
      return make<float>(operands, layout, 0.0f, add, add, [](float x) { return std::log(x); });
    case ReduceFunction::log_sum_exp:
      return make<float>(operands, layout, -std::numeric_limits<float>::infinity(), add_powers,
                         add_powers, [](float x) { return x; });
    default: return make_of<float>(operands, function, layout, count);
  }
}

// Means and extremes of integers that stand for numbers.
template <typename T>
class QuantisedReduceStep final : public Step {
 public:
  QuantisedReduceStep(const Operands& operands, const ReduceLayout& layout, ReduceFunction function)
      : source_(operands.inputs[0]->as<T>()),
        target_(operands.outputs[0]->as<T>()),
        in_(Scale::of(*operands.inputs[0])),
        out_(Scale::of(*operands.outputs[0])),
        layout_(layout),
        function_(function) {
    if constexpr (sizeof(T) == 2) {
      rescaled_ = Multiplier::of(static_cast<double>(in_.scale) / out_.scale);
      require(operands, rescaled_.fits(), "its scales are too far apart");
      if (function == ReduceFunction::mean) { divide(); }
    }
  }

  void run() override {
    const std::size_t width = layout_.run_is_kept ? layout_.run : 1;
    const std::size_t depth = layout_.run_is_kept ? 1 : layout_.run;
    layout_.kept.each_of(0, layout_.kept.count(), [=](std::size_t index, std::size_t start) {
      for (std::size_t i = 0; i < width; ++i) {
        target_[index * width + i] = reduced(start + i, depth);
      }
    });
  }

 private:
  // Makes the multiplier one of means, as LiteRT's reference kernel has it.
  void divide() {
    const std::size_t count = layout_.reduced.count() * (layout_.run_is_kept ? 1 : layout_.run);
    int shift = 63 - __builtin_clzll(static_cast<unsigned long long>(count));
    shift = std::min({shift, 32, 31 + rescaled_.shift});
    rescaled_.factor = static_cast<std::int32_t>((std::int64_t{rescaled_.factor} << shift) /
                                                 static_cast<std::int64_t>(count));
    rescaled_.shift -= shift;
  }

  T reduced(std::size_t start, std::size_t depth) const {
    std::int64_t sum = 0;
    T lowest = std::numeric_limits<T>::max();
    T highest = std::numeric_limits<T>::min();
    layout_.reduced.each([&](std::size_t offset) {
      for (std::size_t i = 0; i < depth; ++i) {
        const T value = source_[start + offset + i];
        sum += value;
        lowest = std::min(lowest, value);
        highest = std::max(highest, value);
      }
    });
    const auto count = static_cast<float>(layout_.reduced.count() * depth);
    switch (function_) {
      case ReduceFunction::minimum: return out_.quantise<T>(in_.dequantise(lowest));
      case ReduceFunction::maximum: return out_.quantise<T>(in_.dequantise(highest));
      default: {
        if constexpr (sizeof(T) == 2) {
          const std::int64_t count64 = static_cast<std::int64_t>(layout_.reduced.count() * depth);
          const auto exact = static_cast<std::int32_t>(sum - in_.zero_point * count64);
          return static_cast<T>(std::clamp<std::int64_t>(
              std::int64_t{rescaled_.times(exact)} + out_.zero_point, std::numeric_limits<T>::min(),
              std::numeric_limits<T>::max()));
        }
        const float total =
            in_.scale * (static_cast<float>(sum) - count * static_cast<float>(in_.zero_point));
        return out_.quantise<T>(function_ == ReduceFunction::mean ? total / count : total);
      }
    }
  }

  const T* source_;
  T* target_;
  Scale in_;
  Scale out_;
  ReduceLayout layout_;
  ReduceFunction function_;
  Multiplier rescaled_;  // of 16 bits: from a sum to the result
};

template <typename T>
std::unique_ptr<Step> make_of_quantised(const Operands& operands, ReduceFunction function,
                                        ReduceLayout layout) {
  switch (function) {
    case ReduceFunction::sum:
    case ReduceFunction::mean:
    case ReduceFunction::minimum:
    case ReduceFunction::maximum:
      return std::make_unique<QuantisedReduceStep<T>>(operands, layout, function);
    default: return nullptr;
  }
}

// Makes of no elements what ONNX Runtime makes of them.
template <typename T>
std::unique_ptr<Step> make_of_nothing(const Operands& operands, ReduceFunction function) {
  using Limits = std::numeric_limits<T>;
  const T most = Limits::has_infinity ? Limits::infinity() : Limits::max();
  const T least = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  T value{0};
  switch (function) {
    case ReduceFunction::maximum:
    case ReduceFunction::log_sum:
    case ReduceFunction::log_sum_exp: value = least; break;
    case ReduceFunction::minimum: value = most; break;
    case ReduceFunction::product: value = T{1}; break;
    default: break;
  }
  const auto& target = *operands.outputs[0];
  return make_plain_step([to = target.as<T>(), count = target.num_elements(), value] {
    std::fill_n(to, count, value);
  });
}

std::unique_ptr<Step> make_reduce(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_Reduce();
  require_arity(operands, 1, 1);
  const auto& source = *operands.inputs[0];
  const auto& target = *operands.outputs[0];
  ReducedAxes is_reduced{};
  std::size_t count = 1;
  std::size_t num_results = 1;
  if (attributes.axes() != nullptr) {
    for (const std::uint32_t axis : *attributes.axes()) {
      require(operands, axis < source.rank() && !is_reduced[axis], "an axis is out of range");
      is_reduced[axis] = true;
      count *= source.shape[axis];
    }
  }
  require(operands, source.type == target.type, "input and output differ in type");
  for (std::size_t axis = 0; axis < source.rank(); ++axis) {
    num_results *= is_reduced[axis] ? 1 : source.shape[axis];
  }
  require(operands, target.num_elements() == num_results,
          "its output has the wrong number of elements");
  if (source.size == 0) {
    require(operands, !source.is_quantised() || target.size == 0, "its input is empty");
    return of_number_type(source.type, [&](auto number) {
      return make_of_nothing<decltype(number)>(operands, attributes.function());
    });
  }
  // Where rows lie apart, the plan sees to it that no two of those in use share bytes.
  const bool is_apart = source.rows != nullptr || source.data + source.size <= target.data ||
                        target.data + target.size <= source.data;
  require(operands, is_apart || (source.data == target.data && count == 1),
          "its output must not overlap its input");
  const ReduceLayout layout = reduce_layout(source, is_reduced);
  const auto function = attributes.function();
  if ((function == ReduceFunction::sum || function == ReduceFunction::mean) &&
      reduces_images(source, is_reduced)) {
    if (auto step = make_sum_of_images(operands)) { return step; }
  }
  switch (source.type) {
    case Type::float32: return make_of_floats(operands, function, layout, count);
    case Type::int32: return make_of<std::int32_t>(operands, function, layout, count);
    case Type::int64: return make_of<std::int64_t>(operands, function, layout, count);
    case Type::int8: return make_of_quantised<std::int8_t>(operands, function, layout);
    case Type::uint8: return make_of_quantised<std::uint8_t>(operands, function, layout);
    case Type::int16:
      return source.is_quantised() && target.is_quantised()
                 ? make_of_quantised<std::int16_t>(operands, function, layout)
                 : nullptr;
    default: return nullptr;
  }
}

const Registration registered{program::Operator::Reduce, make_reduce};

}  // namespace

}  // namespace arenite
