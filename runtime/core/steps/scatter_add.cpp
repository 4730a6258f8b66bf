// Adds slices to a tensor of zeros, each at its index of the first axis.
#include <cstring>

#include "kernels/wrapping.hpp"
#include "of_type.hpp"
#include "operand_checks.hpp"
#include "registry.hpp"

namespace arenite {

namespace {

template <typename T, typename Index>
class ScatterAddStep final : public Step {
 public:
  explicit ScatterAddStep(const Operands& operands)
      : step_(operands.step),
        indices_(operands.inputs[0]->as<Index>()),
        slices_(operands.inputs[1]->as<T>()),
        target_(operands.outputs[0]->as<T>()),
        num_slices_(operands.inputs[0]->num_elements()),
        num_rows_(operands.outputs[0]->shape[0]),
        length_(operands.outputs[0]->num_elements() / num_rows_) {}

  void run() override {
    std::memset(target_, 0, num_rows_ * length_ * sizeof(T));
    for (std::size_t i = 0; i < num_slices_; ++i) {
      // A run cannot fail: indices out of range are ignored.
      if (indices_[i] < 0 || static_cast<std::uint64_t>(indices_[i]) >= num_rows_) { continue; }
      T* row = target_ + static_cast<std::size_t>(indices_[i]) * length_;
      for (std::size_t j = 0; j < length_; ++j) { row[j] = sum(row[j], slices_[i * length_ + j]); }
    }
  }

  void check() const override {
    for (std::size_t i = 0; i < num_slices_; ++i) {
      require_index(step_, indices_[i], 0, static_cast<std::int64_t>(num_rows_));
    }
  }

 private:
  const program::Step& step_;
  const Index* indices_;
  const T* slices_;
  T* target_;
  std::size_t num_slices_;
  std::size_t num_rows_;
  std::size_t length_;
};

std::unique_ptr<Step> make_scatter_add(const Operands& operands) {
  require_arity(operands, 2, 2);
  const auto& indices = *operands.inputs[0];
  const auto& slices = *operands.inputs[1];
  const auto& target = *operands.outputs[0];
  require(operands, target.rank() > 0 && target.size > 0, "it has no rows");
  const std::size_t length = target.num_elements() / target.shape[0];
  require(operands,
          slices.num_elements() % length == 0 &&
              slices.num_elements() / length == indices.num_elements(),
          "it does not have one slice for each index");
  require(operands, slices.type == target.type, "input and output differ in type");
  return of_number_type(target.type, [&](auto number) {
    return of_index_type(operands.inputs[0]->type, [&](auto place) -> std::unique_ptr<Step> {
      return std::make_unique<ScatterAddStep<decltype(number), decltype(place)>>(operands);
    });
  });
}

const Registration registered{program::Operator::ScatterAdd, make_scatter_add};

}  // namespace

}  // namespace arenite
