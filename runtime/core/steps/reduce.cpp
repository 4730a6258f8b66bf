// One element of all along some axes.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/parallel.hpp"
#include "kernels/quantised.hpp"
#include "operand_checks.hpp"
#include "registry.hpp"

namespace arenite {

namespace {

using program::ReduceFunction;
using program::Type;

// A walk over some axes: for each index the offset of its element.
std::vector<std::size_t> offsets(const TensorView& view, const std::vector<bool>& wanted) {
  std::vector<std::size_t> found{0};
  std::size_t stride = 1;
  std::vector<std::size_t> strides(view.rank());
  for (std::size_t axis = view.rank(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= view.shape[axis];
  }
  for (std::size_t axis = 0; axis < view.rank(); ++axis) {
    if (!wanted[axis] || view.shape[axis] == 1) {
      continue;
    }
    std::vector<std::size_t> longer;
    longer.reserve(found.size() * view.shape[axis]);
    for (const std::size_t offset : found) {
      for (std::size_t i = 0; i < view.shape[axis]; ++i) {
        longer.push_back(offset + i * strides[axis]);
      }
    }
    found = std::move(longer);
  }
  return found;
}

// Number of last axes that are all kept, or all reduced, as one run.
struct Layout {
  std::vector<std::size_t> kept;     // offsets of what is made, without the run
  std::vector<std::size_t> reduced;  // offsets of what is taken for each, without the run
  std::size_t run;                   // elements in a row
  bool run_is_kept;
};

Layout layout_of(const TensorView& source, std::vector<bool> is_reduced) {
  Layout layout{{}, {}, 1, true};
  std::size_t rank = source.rank();
  while (rank > 0 && source.shape[rank - 1] == 1) {
    --rank;
  }
  layout.run_is_kept = rank == 0 || !is_reduced[rank - 1];
  TensorView outer = source;
  while (rank > 0 && is_reduced[rank - 1] != layout.run_is_kept) {
    layout.run *= outer.shape[rank - 1];
    --rank;
  }
  outer.shape.resize(rank);
  is_reduced.resize(rank);
  std::vector<bool> is_kept = is_reduced;
  is_kept.flip();
  layout.kept = offsets(outer, is_kept);
  layout.reduced = offsets(outer, is_reduced);
  for (auto* list : {&layout.kept, &layout.reduced}) {
    for (std::size_t& offset : *list) {
      offset *= layout.run;
    }
  }
  return layout;
}

// Each function as: what it starts with, how it takes an element, what it ends with.
template <typename T, typename Take, typename End>
class ReduceStep final : public Step {
 public:
  ReduceStep(const Operands& operands, Layout layout, T start, Take take, End end)
      : source_(operands.inputs[0]->as<T>()),
        target_(operands.outputs[0]->as<T>()),
        layout_(std::move(layout)),
        start_(start),
        take_(take),
        end_(end),
        threads_(operands.threads) {}

  void run() override {
    const std::size_t cost = layout_.reduced.size() * layout_.run * sizeof(T);
    parallel(threads_, layout_.kept.size(), cost, [this](std::size_t first, std::size_t count) {
      for (std::size_t i = first; i < first + count; ++i) {
        layout_.run_is_kept ? along_rows(i) : across_row(i);
      }
    });
  }

  const char* backend() const override { return "arenite"; }

 private:
  void along_rows(std::size_t index) const {
    T* target = target_ + index * layout_.run;
    std::fill(target, target + layout_.run, start_);
    for (const std::size_t offset : layout_.reduced) {
      const T* source = source_ + layout_.kept[index] + offset;
      for (std::size_t i = 0; i < layout_.run; ++i) {
        target[i] = take_(target[i], source[i]);
      }
    }
    for (std::size_t i = 0; i < layout_.run; ++i) {
      target[i] = end_(target[i]);
    }
  }

  void across_row(std::size_t index) const {
    T total = start_;
    for (const std::size_t offset : layout_.reduced) {
      const T* source = source_ + layout_.kept[index] + offset;
      for (std::size_t i = 0; i < layout_.run; ++i) {
        total = take_(total, source[i]);
      }
    }
    target_[index] = end_(total);
  }

  const T* source_;
  T* target_;
  Layout layout_;
  T start_;
  Take take_;
  End end_;
  pthreadpool_t threads_;
};

template <typename T, typename Take, typename End>
std::unique_ptr<Step> make(const Operands& operands, Layout layout, T start, Take take, End end) {
  return std::make_unique<ReduceStep<T, Take, End>>(operands, std::move(layout), start, take, end);
}

template <typename T>
std::unique_ptr<Step> make_of(const Operands& operands, ReduceFunction function, Layout layout,
                              std::size_t count) {
  const auto same = [](T x) { return x; };
  const auto add = [](T a, T b) { return static_cast<T>(a + b); };
  switch (function) {
    case ReduceFunction::sum:
      return make<T>(operands, std::move(layout), T{0}, add, same);
    case ReduceFunction::mean:
      return make<T>(operands, std::move(layout), T{0}, add,
                     [count](T x) { return static_cast<T>(x / static_cast<T>(count)); });
    case ReduceFunction::maximum:
      return make<T>(
          operands, std::move(layout), std::numeric_limits<T>::lowest(),
          [](T a, T b) { return a > b ? a : b; }, same);
    case ReduceFunction::minimum:
      return make<T>(
          operands, std::move(layout), std::numeric_limits<T>::max(),
          [](T a, T b) { return a < b ? a : b; }, same);
    case ReduceFunction::product:
      return make<T>(
          operands, std::move(layout), T{1}, [](T a, T b) { return static_cast<T>(a * b); }, same);
    case ReduceFunction::l1:
      return make<T>(
          operands, std::move(layout), T{0},
          [](T a, T b) { return static_cast<T>(a + (b < 0 ? 0 - b : b)); }, same);
    case ReduceFunction::sum_square:
      return make<T>(
          operands, std::move(layout), T{0}, [](T a, T b) { return static_cast<T>(a + b * b); },
          same);
    default:
      return nullptr;
  }
}

std::unique_ptr<Step> make_of_numbers(const Operands& operands, ReduceFunction function,
                                      Layout layout, std::size_t count) {
  switch (function) {
    case ReduceFunction::l2:
      return make<float>(
          operands, std::move(layout), 0.0f, [](float a, float b) { return a + b * b; },
          [](float x) { return std::sqrt(x); });
    case ReduceFunction::log_sum:
      return make<float>(
          operands, std::move(layout), 0.0f, [](float a, float b) { return a + b; },
          [](float x) { return std::log(x); });
    case ReduceFunction::log_sum_exp:
      // log(e^a + e^b), one element after the other: no sum overflows.
      return make<float>(
          operands, std::move(layout), -std::numeric_limits<float>::infinity(),
          [](float a, float b) {
            const float top = std::max(a, b);
            return std::isinf(top) ? top : top + std::log1p(std::exp(std::min(a, b) - top));
          },
          [](float x) { return x; });
    default:
      return make_of<float>(operands, function, std::move(layout), count);
  }
}

// Means and extremes of integers that stand for numbers.
template <typename T>
class QuantisedReduceStep final : public Step {
 public:
  QuantisedReduceStep(const Operands& operands, Layout layout, ReduceFunction function)
      : source_(operands.inputs[0]->as<T>()),
        target_(operands.outputs[0]->as<T>()),
        in_(Scale::of(*operands.inputs[0])),
        out_(Scale::of(*operands.outputs[0])),
        layout_(std::move(layout)),
        function_(function) {}

  void run() override {
    const std::size_t width = layout_.run_is_kept ? layout_.run : 1;
    const std::size_t depth = layout_.run_is_kept ? 1 : layout_.run;
    for (std::size_t index = 0; index < layout_.kept.size(); ++index) {
      for (std::size_t i = 0; i < width; ++i) {
        target_[index * width + i] = reduced(layout_.kept[index] + i, depth);
      }
    }
  }

  const char* backend() const override { return "arenite"; }

 private:
  T reduced(std::size_t start, std::size_t depth) const {
    std::int64_t sum = 0;
    T lowest = std::numeric_limits<T>::max();
    T highest = std::numeric_limits<T>::min();
    for (const std::size_t offset : layout_.reduced) {
      for (std::size_t i = 0; i < depth; ++i) {
        const T value = source_[start + offset + i];
        sum += value;
        lowest = std::min(lowest, value);
        highest = std::max(highest, value);
      }
    }
    const auto count = static_cast<float>(layout_.reduced.size() * depth);
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
  Layout layout_;
  ReduceFunction function_;
};

template <typename T>
std::unique_ptr<Step> make_of_quantised(const Operands& operands, ReduceFunction function,
                                        Layout layout) {
  switch (function) {
    case ReduceFunction::sum:
    case ReduceFunction::mean:
    case ReduceFunction::minimum:
    case ReduceFunction::maximum:
      return std::make_unique<QuantisedReduceStep<T>>(operands, std::move(layout), function);
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
  require(operands, source.data != target.data, "it cannot write over its input");
  Layout layout = layout_of(source, is_reduced);
  const auto function = attributes.function();
  switch (source.type) {
    case Type::float32:
      return make_of_numbers(operands, function, std::move(layout), count);
    case Type::int32:
      return make_of<std::int32_t>(operands, function, std::move(layout), count);
    case Type::int64:
      return make_of<std::int64_t>(operands, function, std::move(layout), count);
    case Type::int8:
      return make_of_quantised<std::int8_t>(operands, function, std::move(layout));
    case Type::uint8:
      return make_of_quantised<std::uint8_t>(operands, function, std::move(layout));
    default:
      return nullptr;
  }
}

const Registration registered{program::Operator::Reduce, make_reduce};

}  // namespace

}  // namespace arenite
