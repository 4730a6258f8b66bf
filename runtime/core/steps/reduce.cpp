// One element of all along some axes.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "kernels/parallel.hpp"
#include "kernels/quantised.hpp"
#include "kernels/wrapping.hpp"
#include "operand_checks.hpp"
#include "registry.hpp"
#include "steps/reduce_layout.hpp"

namespace arenite {

namespace {

using program::ReduceFunction;
using program::Type;

// Each function as: what it starts with, how it takes an element, what it ends with. Where one
// element is reduced to one, the output may be the input.
template <typename T, typename Take, typename End>
class ReduceStep final : public Step {
 public:
  ReduceStep(const Operands& operands, const ReduceLayout& layout, T start, Take take, End end)
      : source_(operands.inputs[0]->as<T>()),
        target_(operands.outputs[0]->as<T>()),
        layout_(layout),
        start_(start),
        take_(take),
        end_(end),
        threads_(operands.threads) {}

  void run() override {
    const std::size_t cost = layout_.reduced.count() * layout_.run * sizeof(T);
    parallel(threads_, layout_.kept.count(), cost, [this](std::size_t first, std::size_t count) {
      for (std::size_t i = first; i < first + count; ++i) {
        layout_.run_is_kept ? along_rows(i) : across_row(i);
      }
    });
  }

  const char* backend() const override { return "arenite"; }

 private:
  void along_rows(std::size_t index) const {
    const std::size_t run = layout_.run;
    const T* first = source_ + layout_.kept.offset(index);
    T* target = target_ + index * run;
    layout_.reduced.each([&](std::size_t offset) {
      const T* source = first + offset;
      if (offset == 0) {
        for (std::size_t i = 0; i < run; ++i) {
          target[i] = take_(start_, source[i]);
        }
        return;
      }
      for (std::size_t i = 0; i < run; ++i) {
        target[i] = take_(target[i], source[i]);
      }
    });
    for (std::size_t i = 0; i < run; ++i) {
      target[i] = end_(target[i]);
    }
  }

  void across_row(std::size_t index) const {
    T total = start_;
    const T* first = source_ + layout_.kept.offset(index);
    layout_.reduced.each([&](std::size_t offset) {
      const T* source = first + offset;
      for (std::size_t i = 0; i < layout_.run; ++i) {
        total = take_(total, source[i]);
      }
    });
    target_[index] = end_(total);
  }

  const T* source_;
  T* target_;
  ReduceLayout layout_;
  T start_;
  Take take_;
  End end_;
  pthreadpool_t threads_;
};

template <typename T, typename Take, typename End>
std::unique_ptr<Step> make(const Operands& operands, const ReduceLayout& layout, T start, Take take,
                           End end) {
  return std::make_unique<ReduceStep<T, Take, End>>(operands, layout, start, take, end);
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
  switch (function) {
    case ReduceFunction::sum:
      return make<T>(operands, layout, T{0}, add, same);
    case ReduceFunction::mean:
      return make<T>(operands, layout, T{0}, add, [count](T x) { return quotient(x, count); });
    case ReduceFunction::maximum:
      return make<T>(
          operands, layout, std::numeric_limits<T>::lowest(),
          [](T a, T b) { return a > b ? a : b; }, same);
    case ReduceFunction::minimum:
      return make<T>(
          operands, layout, std::numeric_limits<T>::max(), [](T a, T b) { return a < b ? a : b; },
          same);
    case ReduceFunction::product:
      return make<T>(operands, layout, T{1}, [](T a, T b) { return product(a, b); }, same);
    case ReduceFunction::l1:
      return make<T>(operands, layout, T{0}, [](T a, T b) { return sum(a, magnitude(b)); }, same);
    case ReduceFunction::sum_square:
      return make<T>(operands, layout, T{0}, [](T a, T b) { return sum(a, product(b, b)); }, same);
    default:
      return nullptr;
  }
}

std::unique_ptr<Step> make_of_numbers(const Operands& operands, ReduceFunction function,
                                      const ReduceLayout& layout, std::size_t count) {
  switch (function) {
    case ReduceFunction::l2:
      return make<float>(
          operands, layout, 0.0f, [](float a, float b) { return a + b * b; },
          [](float x) { return std::sqrt(x); });
    case ReduceFunction::log_sum:
      return make<float>(
          operands, layout, 0.0f, [](float a, float b) { return a + b; },
          [](float x) { return std::log(x); });
    case ReduceFunction::log_sum_exp:
      // log(e^a + e^b), one element after the other: no sum overflows.
      return make<float>(
          operands, layout, -std::numeric_limits<float>::infinity(),
          [](float a, float b) {
            const float top = std::max(a, b);
            return std::isinf(top) ? top : top + std::log1p(std::exp(std::min(a, b) - top));
          },
          [](float x) { return x; });
    default:
      return make_of<float>(operands, function, layout, count);
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
        function_(function) {}

  void run() override {
    const std::size_t width = layout_.run_is_kept ? layout_.run : 1;
    const std::size_t depth = layout_.run_is_kept ? 1 : layout_.run;
    for (std::size_t index = 0; index < layout_.kept.count(); ++index) {
      const std::size_t start = layout_.kept.offset(index);
      for (std::size_t i = 0; i < width; ++i) {
        target_[index * width + i] = reduced(start + i, depth);
      }
    }
  }

  const char* backend() const override { return "arenite"; }

 private:
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
      case ReduceFunction::minimum:
        return out_.integer<T>(in_.number(lowest));
      case ReduceFunction::maximum:
        return out_.integer<T>(in_.number(highest));
      default: {
        const float total =
            in_.scale * (static_cast<float>(sum) - count * static_cast<float>(in_.zero_point));
        return out_.integer<T>(function_ == ReduceFunction::mean ? total / count : total);
      }
    }
  }

  const T* source_;
  T* target_;
  Scale in_;
  Scale out_;
  ReduceLayout layout_;
  ReduceFunction function_;
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
    default:
      return nullptr;
  }
}

std::unique_ptr<Step> make_reduce(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_Reduce();
  require_arity(operands, 1, 1);
  const auto& source = *operands.inputs[0];
  const auto& target = *operands.outputs[0];
  std::vector<bool> is_reduced(source.rank());
  std::size_t count = 1;
  if (attributes.axes() != nullptr) {
    for (const std::uint32_t axis : *attributes.axes()) {
      require(operands, axis < source.rank() && !is_reduced[axis], "an axis is beyond its input");
      is_reduced[axis] = true;
      count *= source.shape[axis];
    }
  }
  require(operands, source.type == target.type, "input and output differ in type");
  require(operands, count > 0 && source.size > 0, "it reduces nothing");
  require(operands, target.num_elements() == source.num_elements() / count,
          "the output does not have one element for each that is made");
  require(operands, source.data != target.data || count == 1, "it cannot write over its input");
  const ReduceLayout layout = reduce_layout(source, is_reduced);
  const auto function = attributes.function();
  switch (source.type) {
    case Type::float32:
      return make_of_numbers(operands, function, layout, count);
    case Type::int32:
      return make_of<std::int32_t>(operands, function, layout, count);
    case Type::int64:
      return make_of<std::int64_t>(operands, function, layout, count);
    case Type::int8:
      return make_of_quantised<std::int8_t>(operands, function, layout);
    case Type::uint8:
      return make_of_quantised<std::uint8_t>(operands, function, layout);
    default:
      return nullptr;
  }
}

const Registration registered{program::Operator::Reduce, make_reduce};

}  // namespace

}  // namespace arenite
