// The index of the largest or smallest element along an axis.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

#include "kernels/parallel.hpp"
#include "kernels/processor.hpp"
#include "registry.hpp"
#include "steps/axis_split.hpp"
#include "steps/by_rows.hpp"
#include "steps/of_type.hpp"

namespace arenite {

namespace {

template <typename Source, typename Target>
class ArgReduceStep final : public Step {
 public:
  ArgReduceStep(const Operands& operands, const AxisSplit& split)
      : source_(operands.inputs[0]->as<Source>()),
        target_(operands.outputs[0]->as<Target>()),
        split_(split),
        minimum_(operands.step.kernel_as_ArgReduce()->minimum()),
        last_(operands.step.kernel_as_ArgReduce()->last()),
        rows_(operands),
        has_rows_(rows_.has_rows && split.inner == 1 &&
                  rows_.source.row_stride == rows_.target.row_stride * split.length),
        is_short_(split.inner == 1 && split.length <= kShort),
        threads_(operands.threads) {}

  void run() override {
    if (rows_.lies_apart) {
      run_rows({0, rows_.target.rows});
      return;
    }
    parallel(threads_, split_.outer * split_.inner, sizeof(Source) * split_.length,
             [this](std::size_t first, std::size_t count) {
               if (split_.inner == 1) {
                 find_each(source_ + first * split_.length, target_ + first, count);
                 return;
               }
               for (std::size_t i = first; i < first + count; ++i) {
                 const std::size_t outer = i / split_.inner * split_.length * split_.inner;
                 target_[i] = static_cast<Target>(find(source_ + outer + i % split_.inner));
               }
             });
  }

  // Along the last axis alone.
  bool makes_rows() const override { return has_rows_; }
  bool finds_rows(std::size_t /*input*/) const override { return has_rows_; }
  void run_rows(RowRange rows) override {
    const std::size_t length = rows_.target.row_stride;
    rows_.each(threads_, rows, sizeof(Source) * rows_.source.row_stride,
               [this, length](const Source* source, Target* target, std::size_t count) {
                 find_each(source, target, count * length);
               });
  }

 private:
  // Bytes are ranked by 32-bit keys, made of the element and then the index, so that the largest is
  // found by vectors, without a branch.
  static constexpr std::size_t kShort = std::size_t{1} << 16;

  void find_each(const Source* source, Target* target, std::size_t count) const {
    if constexpr (sizeof(Source) == 1) {
      if (is_short_) {
        with_widest_vectors([=] { find_all(source, target, count); });
        return;
      }
    }
    for (std::size_t i = 0; i < count; ++i) {
      target[i] = static_cast<Target>(find(source + i * split_.length));
    }
  }

  __attribute__((always_inline)) inline void find_all(const Source* source, Target* target,
                                                      std::size_t count) const {
    const auto length = static_cast<std::int32_t>(split_.length);
    const std::int32_t sign = minimum_ ? -1 : 1;
    const std::int32_t turn = last_ ? 1 : -1;
    for (std::size_t i = 0; i < count; ++i, source += split_.length) {
      std::int32_t best = std::numeric_limits<std::int32_t>::min();
      for (std::int32_t k = 0; k < length; ++k) {
        const std::int32_t rank =
            static_cast<std::int32_t>(source[k]) * sign * (1 << 17) + k * turn;
        best = std::max(best, rank);
      }
      // The index, as the remainder nearest to zero.
      const std::int32_t rest = ((best + (1 << 16)) & ((1 << 17) - 1)) - (1 << 16);
      target[i] = static_cast<Target>(rest * turn);
    }
  }

  std::size_t find(const Source* source) const {
    std::size_t best = 0;
    for (std::size_t i = 1; i < split_.length; ++i) {
      const Source value = source[i * split_.inner];
      const Source top = source[best * split_.inner];
      const bool is_better = minimum_ ? value < top : value > top;
      if (is_better || (last_ && value == top)) { best = i; }
    }
    return best;
  }

  const Source* source_;
  Target* target_;
  AxisSplit split_;
  bool minimum_;
  bool last_;
  RowPair<Source, Target> rows_;
  bool has_rows_;
  bool is_short_;
  pthreadpool_t threads_;
};

std::unique_ptr<Step> make_arg_reduce(const Operands& operands) {
  require_arity(operands, 1, 1);
  const auto& source = *operands.inputs[0];
  const AxisSplit split(operands, source, operands.step.kernel_as_ArgReduce()->axis());
  require(operands, operands.outputs[0]->num_elements() == split.outer * split.inner,
          "its output has the wrong number of elements");
  if (source.size == 0) {  // a run cannot fail: of no elements the first is the best
    return make_plain_step(
        [target = operands.outputs[0]] { std::memset(target->data, 0, target->size); });
  }
  return of_number_type(source.type, [&](auto element) {
    return of_index_type(operands.outputs[0]->type, [&](auto index) -> std::unique_ptr<Step> {
      return std::make_unique<ArgReduceStep<decltype(element), decltype(index)>>(operands, split);
    });
  });
}

const Registration registered{program::Operator::ArgReduce, make_arg_reduce};

}  // namespace

}  // namespace arenite
