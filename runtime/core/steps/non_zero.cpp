// The places of the elements that are not 0, one row of indices for each.
#include <algorithm>
#include <array>
#include <cstdint>

#include "of_type.hpp"
#include "operand_checks.hpp"
#include "registry.hpp"

namespace arenite {

namespace {

using program::Type;

template <typename T>
class NonZeroStep final : public Step {
 public:
  explicit NonZeroStep(const Operands& operands)
      : values_(operands.inputs[0]->as<T>()),
        num_elements_(operands.inputs[0]->num_elements()),
        rows_(operands.outputs[0]->as<std::int64_t>()),
        rank_(operands.inputs[0]->rank()) {
    std::copy_n(operands.inputs[0]->shape.begin(), rank_, shape_.begin());
  }

  void run() override {
    count_ = 0;
    for (std::size_t i = 0; i < num_elements_; ++i) {
      if (values_[i] != T{0}) { write(i, rows_ + count_++ * rank_); }
    }
  }

  std::size_t count() const override { return count_; }

 private:
  void write(std::size_t place, std::int64_t* row) const {
    for (std::size_t axis = rank_; axis-- > 0; place /= shape_[axis]) {
      row[axis] = static_cast<std::int64_t>(place % shape_[axis]);
    }
  }

  const T* values_;
  std::size_t num_elements_;
  std::int64_t* rows_;
  std::size_t rank_;
  std::array<std::size_t, kMaxRank> shape_{};
  std::size_t count_ = 0;
};

std::unique_ptr<Step> make_non_zero(const Operands& operands) {
  require_arity(operands, 1, 1);
  const auto& source = *operands.inputs[0];
  const auto& places = *operands.outputs[0];
  require(operands, source.rank() > 0, "a scalar has no axes");
  require(operands,
          places.type == Type::int64 && places.rank() == 2 && places.shape[1] == source.rank() &&
              places.shape[0] >= source.num_elements(),
          "its output does not have a row of indices for each element");
  const auto make = [&](auto zero) -> std::unique_ptr<Step> {
    return std::make_unique<NonZeroStep<decltype(zero)>>(operands);
  };
  return source.type == Type::boolean ? make(std::uint8_t{}) : of_number_type(source.type, make);
}

const Registration registered{program::Operator::NonZero, make_non_zero};

}  // namespace

}  // namespace arenite
