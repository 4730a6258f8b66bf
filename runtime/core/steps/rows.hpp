// Steps that process each row of the last axis, or of the last axes, separately.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include "kernels/parallel.hpp"
#include "kernels/processor.hpp"
#include "operand_checks.hpp"
#include "steps/by_rows.hpp"

namespace arenite {

template <typename Source, typename Target, typename Row>
class RowStep final : public Step {
 public:
  RowStep(const Operands& operands, std::size_t num_rows, std::size_t length, Row row)
      : source_(operands.inputs[0]->as<Source>()),
        target_(operands.outputs[0]->as<Target>()),
        num_rows_(num_rows),
        length_(length),
        pair_(operands),
        row_(std::move(row)),
        threads_(operands.threads) {}

  void run() override {
    if (pair_.lies_apart) {
      run_rows({0, pair_.target.rows});
      return;
    }
    parallel(threads_, num_rows_, 4 * sizeof(Source) * length_,
             [this](std::size_t first, std::size_t count) {
               make(source_ + first * length_, target_ + first * length_, count);
             });
  }

  // Rows of an image: whole numbers of those that are treated alone.
  bool makes_rows() const override {
    return pair_.has_rows && length_ > 0 && pair_.source.row_stride % length_ == 0;
  }
  bool finds_rows(std::size_t input) const override { return input == 0 && makes_rows(); }
  void run_rows(RowRange rows) override {
    const std::size_t each = pair_.source.row_stride / length_;
    pair_.each(threads_, rows, 4 * sizeof(Source) * pair_.source.row_stride,
               [this, each](const Source* source, Target* target, std::size_t count) {
                 make(source, target, count * each);
               });
  }

 private:
  void make(const Source* source, Target* target, std::size_t num_rows) const {
    with_widest_vectors([=, length = length_, row = row_] {
      if constexpr (std::is_invocable_v<Row, const Source*, Target*, std::size_t, std::size_t>) {
        row(source, target, num_rows, length);
      } else {
        for (std::size_t i = 0; i < num_rows; ++i) {
          row(source + i * length, target + i * length, length);
        }
      }
    });
  }

  const Source* source_;
  Target* target_;
  std::size_t num_rows_;
  std::size_t length_;
  RowPair<Source, Target> pair_;
  Row row_;
  pthreadpool_t threads_;
};

// Returns the step that calls row(source, target, length) on each row of `length`, or
// row(source, target, rows, length) on many of them.
template <typename Source, typename Target = Source, typename Row>
std::unique_ptr<Step> make_rows(const Operands& operands, std::size_t length, Row row) {
  const std::size_t count = operands.inputs[0]->num_elements();
  require(operands, operands.outputs[0]->num_elements() == count, "input and output differ");
  const std::size_t num_rows = length == 0 ? 0 : count / length;
  return std::make_unique<RowStep<Source, Target, Row>>(operands, num_rows, length, std::move(row));
}

}  // namespace arenite
