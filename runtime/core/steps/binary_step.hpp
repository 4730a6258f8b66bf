// A step that applies a function to each pair of elements, with broadcasting.
#pragma once

#include <cstddef>

#include "kernels/broadcast.hpp"
#include "kernels/parallel.hpp"
#include "kernels/processor.hpp"
#include "step.hpp"
#include "steps/by_rows.hpp"

namespace arenite {

// The starts of two arrays that are broadcast to a third.
template <typename Source, typename Target>
struct Walk {
  const Broadcast<2>& broadcast;
  const Source* one;
  const Source* other;
  Target* target;
};

// Makes elements [first, first + count) of a single run, or so many rows of the walk.
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
      for (std::size_t i = 0; i < length; ++i) { target[i] = function(value, other[i]); }
    } else if (inner.strides[1] == 0) {
      const Source value = *other;
#pragma GCC ivdep
      for (std::size_t i = 0; i < length; ++i) { target[i] = function(one[i], value); }
    } else {
#pragma GCC ivdep
      for (std::size_t i = 0; i < length; ++i) { target[i] = function(one[i], other[i]); }
    }
  }
}

// Whether a function is also compiled for wider vectors. That takes most of the build time, so it
// is limited to functions on which networks spend time.
enum class Copies { one, for_wider_vectors };

// The part that does not depend on the function: compiled once for each pair of types.
template <typename Source, typename Target>
class BroadcastStep : public Step {
 public:
  explicit BroadcastStep(const Operands& operands)
      : broadcast_(operands),
        rows_(operands),
        lies_apart_(lie_apart(operands)),
        one_(operands.inputs[0]->as<Source>()),
        other_(operands.inputs[1]->as<Source>()),
        target_(operands.outputs[0]->as<Target>()),
        result_(rows_.has_rows() ? as_rows<Target>(*operands.outputs[0]) : Image<Target>{}),
        threads_(operands.threads) {}

  void run() override {
    if (lies_apart_) {
      run_rows({0, result_.rows});
      return;
    }
    const Walk<Source, Target> walk{broadcast_, one_, other_, target_};
    const std::size_t cost = broadcast_.num_rows == 1 ? 8 : 8 * broadcast_.inner.length;
    parallel(threads_, size(broadcast_), cost,
             [this, &walk](std::size_t first, std::size_t count) { make(walk, first, count); });
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
                 make(walk, 0, size(rows_.inside()));
               }
             });
  }

 private:
  // As make_part, with the function of the step.
  virtual void make(const Walk<Source, Target>& walk, std::size_t first,
                    std::size_t count) const = 0;

  // Elements of what is one run, or rows.
  static std::size_t size(const Broadcast<2>& broadcast) {
    return broadcast.num_rows == 1 ? broadcast.inner.length : broadcast.num_rows;
  }

  Broadcast<2> broadcast_;
  RowBroadcast<2> rows_;
  bool lies_apart_;
  const Source* one_;
  const Source* other_;
  Target* target_;
  Image<Target> result_;
  pthreadpool_t threads_;
};

template <Copies copies, typename Source, typename Target, typename Function>
class BinaryStep final : public BroadcastStep<Source, Target> {
 public:
  BinaryStep(const Operands& operands, Function function)
      : BroadcastStep<Source, Target>(operands), function_(function) {}

 private:
  void make(const Walk<Source, Target>& walk, std::size_t first, std::size_t count) const override {
    if constexpr (copies == Copies::for_wider_vectors) {
      with_widest_vectors([=, function = function_] { make_part(walk, first, count, function); });
    } else {
      make_part(walk, first, count, function_);
    }
  }

  Function function_;
};

}  // namespace arenite
