// Element-wise steps with one input.
#pragma once

#include <cstddef>

#include "kernels/parallel.hpp"
#include "steps/by_rows.hpp"

namespace arenite {

// The part that does not depend on the function: compiled once for each pair of types.
template <typename Source, typename Target>
class ElementStep : public Step {
 public:
  explicit ElementStep(const Operands& operands)
      : source_(operands.inputs[0]->as<Source>()),
        target_(operands.outputs[0]->as<Target>()),
        count_(operands.inputs[0]->num_elements()),
        rows_(operands),
        threads_(operands.threads) {}

  void run() override {
    if (rows_.lies_apart) {
      run_rows({0, rows_.target.rows});
      return;
    }
    parallel(threads_, count_, 4 * sizeof(Source), [this](std::size_t first, std::size_t count) {
      map(source_ + first, target_ + first, count);
    });
  }

  bool makes_rows() const override { return rows_.has_rows; }
  bool finds_rows(std::size_t /*input*/) const override { return rows_.has_rows; }
  void run_rows(RowRange rows) override {
    const std::size_t length = rows_.source.row_stride;
    rows_.each(threads_, rows, 4 * sizeof(Source) * length,
               [this, length](const Source* source, Target* target, std::size_t count) {
                 map(source, target, count * length);
               });
  }

 private:
  virtual void map(const Source* source, Target* target, std::size_t count) const = 0;

  const Source* source_;
  Target* target_;
  std::size_t count_;
  RowPair<Source, Target> rows_;
  pthreadpool_t threads_;
};

}  // namespace arenite
