// Slices added to zeros, each at its index of the first axis.
#include <cstring>

#include "kernels/wrapping.hpp"
#include "operand_checks.hpp"
#include "registry.hpp"

namespace arenite {

namespace {

using program::Type;

template <typename T, typename Index>
class ScatterAddStep final : public Step {
 public:
  explicit ScatterAddStep(const Operands& operands)
      : indices_(operands.inputs[0]->as<Index>()),
        slices_(operands.inputs[1]->as<T>()),
        target_(operands.outputs[0]->as<T>()),
        num_slices_(operands.inputs[0]->num_elements()),
        num_rows_(operands.outputs[0]->shape[0]),
        length_(operands.outputs[0]->num_elements() / num_rows_) {}

  void run() override {
    std::memset(target_, 0, num_rows_ * length_ * sizeof(T));
    for (std::size_t i = 0; i < num_slices_; ++i) {
      // A run cannot fail: what is beyond is lost.
      if (indices_[i] < 0 || static_cast<std::uint64_t>(indices_[i]) >= num_rows_) {
        continue;
      }
      T* row = target_ + static_cast<std::size_t>(indices_[i]) * length_;
      for (std::size_t j = 0; j < length_; ++j) {
        row[j] = sum(row[j], slices_[i * length_ + j]);
      }
    }
  }

  const char* backend() const override { return "arenite"; }

 private:
  const Index* indices_;
  const T* slices_;
  T* target_;
  std::size_t num_slices_;
  std::size_t num_rows_;
  std::size_t length_;
};

template <typename T>
std::unique_ptr<Step> make_of(const Operands& operands) {
  switch (operands.inputs[0]->type) {
    case Type::int32:
      return std::make_unique<ScatterAddStep<T, std::int32_t>>(operands);
    case Type::int64:
      return std::make_unique<ScatterAddStep<T, std::int64_t>>(operands);
    default:
      return nullptr;
  }
}

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
  switch (target.type) {
    case Type::float32:
      return make_of<float>(operands);
    case Type::int8:
      return make_of<std::int8_t>(operands);
    case Type::uint8:
      return make_of<std::uint8_t>(operands);
    case Type::int32:
      return make_of<std::int32_t>(operands);
    case Type::int64:
      return make_of<std::int64_t>(operands);
    default:
      return nullptr;
  }
}

const Registration registered{program::Operator::ScatterAdd, make_scatter_add};

}  // namespace

}  // namespace arenite
