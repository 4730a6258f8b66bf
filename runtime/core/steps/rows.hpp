// Steps that treat each row of the last axis, or of the last axes, alone.
#pragma once

#include <memory>
#include <utility>

#include "kernels/parallel.hpp"
#include "operand_checks.hpp"

namespace arenite {

template <typename Source, typename Target, typename Row>
class RowStep final : public Step {
 public:
  RowStep(const Operands& operands, std::size_t num_rows, std::size_t length, Row row)
      : source_(operands.inputs[0]->as<Source>()), target_(operands.outputs[0]->as<Target>()),
        num_rows_(num_rows), length_(length), row_(std::move(row)), threads_(operands.threads) {}

  void run() override {
    parallel(threads_, num_rows_, 4 * sizeof(Source) * length_,
             [this](std::size_t first, std::size_t count) {
               for (std::size_t i = first; i < first + count; ++i) {
                 row_(source_ + i * length_, target_ + i * length_, length_);
               }
             });
  }

  const char* backend() const override { return "arenite"; }

 private:
  const Source* source_;
  Target* target_;
  std::size_t num_rows_;
  std::size_t length_;
  Row row_;
  pthreadpool_t threads_;
};

// Returns the step that calls row(source, target, length) on each row of `length`.
template <typename Source, typename Target = Source, typename Row>
std::unique_ptr<Step> make_rows(const Operands& operands, std::size_t length, Row row) {
  const std::size_t count = operands.inputs[0]->num_elements();
  require(operands, operands.outputs[0]->num_elements() == count, "input and output differ");
  const std::size_t num_rows = length == 0 ? 0 : count / length;
  return std::make_unique<RowStep<Source, Target, Row>>(operands, num_rows, length, std::move(row));
}

}  // namespace arenite
