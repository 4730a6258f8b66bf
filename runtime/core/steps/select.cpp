// Selects elements of one of two tensors by a condition.
#include "kernels/broadcast.hpp"
#include "kernels/parallel.hpp"
#include "registry.hpp"
#include "steps/by_rows.hpp"
#include "validation.hpp"

namespace arenite {

namespace {

template <typename T>
class SelectStep final : public Step {
 public:
  explicit SelectStep(const Operands& operands)
      : broadcast_(operands),
        rows_(operands),
        lies_apart_(lie_apart(operands)),
        condition_(operands.inputs[0]->as<std::uint8_t>()),
        on_true_(operands.inputs[1]->as<T>()),
        on_false_(operands.inputs[2]->as<T>()),
        target_(operands.outputs[0]->as<T>()),
        result_(rows_.has_rows() ? as_rows<T>(*operands.outputs[0]) : Image<T>{}),
        threads_(operands.threads) {}

  void run() override {
    if (lies_apart_) {
      run_rows({0, result_.rows});
      return;
    }
    const std::size_t length = broadcast_.inner.length;
    parallel(threads_, broadcast_.num_rows, 4 * sizeof(T) * length,
             [this, length](std::size_t first, std::size_t count) {
               select(broadcast_, first, count, {condition_, on_true_, on_false_},
                      target_ + first * length);
             });
  }

  bool makes_rows() const override { return rows_.has_rows(); }
  bool finds_rows(std::size_t input) const override {
    return rows_.has_rows() && rows_.follows(input);
  }
  void run_rows(RowRange rows) override {
    parallel(threads_, rows.count, 4 * sizeof(T) * result_.row_stride,
             [&](std::size_t first, std::size_t count) {
               first += rows.first;
               for (std::size_t row = first; row < first + count; ++row) {
                 const Inputs inputs{rows_.row(condition_, 0, row), rows_.row(on_true_, 1, row),
                                     rows_.row(on_false_, 2, row)};
                 select(rows_.inside(), 0, rows_.inside().num_rows, inputs, result_.row(row));
               }
             });
  }

 private:
  struct Inputs {
    const std::uint8_t* condition;
    const T* on_true;
    const T* on_false;
  };

  static void select(const Broadcast<3>& broadcast, std::size_t first, std::size_t count,
                     const Inputs& inputs, T* target) {
    const auto& steps = broadcast.inner.strides;
    for (std::size_t row = first; row < first + count; ++row) {
      const auto starts = broadcast.starts(row);
      for (std::size_t i = 0; i < broadcast.inner.length; ++i) {
        *target++ = inputs.condition[starts[0] + i * steps[0]] != 0
                        ? inputs.on_true[starts[1] + i * steps[1]]
                        : inputs.on_false[starts[2] + i * steps[2]];
      }
    }
  }

  Broadcast<3> broadcast_;
  RowBroadcast<3> rows_;
  bool lies_apart_;
  const std::uint8_t* condition_;
  const T* on_true_;
  const T* on_false_;
  T* target_;
  Image<T> result_;
  pthreadpool_t threads_;
};

std::unique_ptr<Step> make_select(const Operands& operands) {
  require_arity(operands, 3, 3);
  const auto type = operands.outputs[0]->type;
  require(operands, operands.inputs[0]->type == program::Type::boolean,
          "its condition must be boolean");
  require(operands, operands.inputs[1]->type == type && operands.inputs[2]->type == type,
          "input and output differ in type");
  switch (element_size(type)) {
    case 1: return std::make_unique<SelectStep<std::uint8_t>>(operands);
    case 2: return std::make_unique<SelectStep<std::uint16_t>>(operands);
    case 4: return std::make_unique<SelectStep<std::uint32_t>>(operands);
    default: return std::make_unique<SelectStep<std::uint64_t>>(operands);
  }
}

const Registration registered{program::Operator::Select, make_select};

}  // namespace

}  // namespace arenite
