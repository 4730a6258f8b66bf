// Elements of one tensor or another, by a condition.
#include "kernels/broadcast.hpp"
#include "kernels/parallel.hpp"
#include "registry.hpp"
#include "validation.hpp"

namespace arenite {

namespace {

template <typename T>
class SelectStep final : public Step {
 public:
  explicit SelectStep(const Operands& operands)
      : broadcast_(operands),
        condition_(operands.inputs[0]->as<std::uint8_t>()),
        on_true_(operands.inputs[1]->as<T>()),
        on_false_(operands.inputs[2]->as<T>()),
        target_(operands.outputs[0]->as<T>()),
        threads_(operands.threads) {}

  void run() override {
    const std::size_t length = broadcast_.inner.length;
    parallel(threads_, broadcast_.num_rows, 4 * sizeof(T) * length,
             [this, length](std::size_t first, std::size_t count) {
               for (std::size_t row = first; row < first + count; ++row) {
                 const auto starts = broadcast_.starts(row);
                 const auto& steps = broadcast_.inner.strides;
                 for (std::size_t i = 0; i < length; ++i) {
                   target_[row * length + i] = condition_[starts[0] + i * steps[0]] != 0
                                                   ? on_true_[starts[1] + i * steps[1]]
                                                   : on_false_[starts[2] + i * steps[2]];
                 }
               }
             });
  }

  const char* backend() const override { return "arenite"; }

 private:
  Broadcast<3> broadcast_;
  const std::uint8_t* condition_;
  const T* on_true_;
  const T* on_false_;
  T* target_;
  pthreadpool_t threads_;
};

std::unique_ptr<Step> make_select(const Operands& operands) {
  require_arity(operands, 3, 3);
  const auto type = operands.outputs[0]->type;
  require(operands, operands.inputs[0]->type == program::Type::boolean,
          "its condition is not boolean");
  require(operands, operands.inputs[1]->type == type && operands.inputs[2]->type == type,
          "input and output differ in type");
  switch (element_size(type)) {
    case 1:
      return std::make_unique<SelectStep<std::uint8_t>>(operands);
    case 2:
      return std::make_unique<SelectStep<std::uint16_t>>(operands);
    case 4:
      return std::make_unique<SelectStep<std::uint32_t>>(operands);
    default:
      return std::make_unique<SelectStep<std::uint64_t>>(operands);
  }
}

const Registration registered{program::Operator::Select, make_select};

}  // namespace

}  // namespace arenite
