// The largest elements of each row of the last axis, and where they are; of equal ones the first.
#include <algorithm>

#include "of_type.hpp"
#include "operand_checks.hpp"
#include "registry.hpp"

namespace arenite {

namespace {

template <typename T, typename Index>
class TopKStep final : public Step {
 public:
  explicit TopKStep(const Operands& operands)
      : source_(operands.inputs[0]->as<T>()),
        values_(operands.outputs[0]->as<T>()),
        indices_(operands.outputs[1]->as<Index>()),
        length_(operands.inputs[0]->shape.back()),
        most_(operands.outputs[0]->shape.back()),
        num_rows_(operands.outputs[0]->num_elements() / most_) {}

  void run() override {
    for (std::size_t row = 0; row < num_rows_; ++row) {
      sort_row(source_ + row * length_, values_ + row * most_, indices_ + row * most_);
    }
  }

 private:
  // The outputs are always sorted, so that no other memory is needed.
  void sort_row(const T* source, T* values, Index* indices) const {
    std::size_t count = 0;
    for (std::size_t i = 0; i < length_; ++i) {
      if (count == most_ && !(source[i] > values[count - 1])) { continue; }
      count = std::min(count + 1, most_);
      std::size_t place = count - 1;
      for (; place > 0 && source[i] > values[place - 1]; --place) {
        values[place] = values[place - 1];
        indices[place] = indices[place - 1];
      }
      values[place] = source[i];
      indices[place] = static_cast<Index>(i);
    }
  }

  const T* source_;
  T* values_;
  Index* indices_;
  std::size_t length_;
  std::size_t most_;
  std::size_t num_rows_;
};

std::unique_ptr<Step> make_top_k(const Operands& operands) {
  require_arity(operands, 1, 1, 2);
  require(operands, operands.outputs.size() == 2, "it has too few outputs");
  const auto& source = *operands.inputs[0];
  const auto& values = *operands.outputs[0];
  require(operands, source.rank() > 0 && values.rank() == source.rank(),
          "input and output differ in rank");
  require(operands, values.shape == operands.outputs[1]->shape, "its outputs differ");
  require(operands,
          std::equal(source.shape.begin(), source.shape.end() - 1, values.shape.begin()) &&
              values.shape.back() <= source.shape.back() && values.size > 0 &&
              source.shape.back() < (std::size_t{1} << 31),
          "its k does not fit the row");
  require(operands, source.type == values.type, "input and output differ in type");
  return of_number_type(source.type, [&](auto number) {
    return of_index_type(operands.outputs[1]->type, [&](auto place) -> std::unique_ptr<Step> {
      return std::make_unique<TopKStep<decltype(number), decltype(place)>>(operands);
    });
  });
}

const Registration registered{program::Operator::TopK, make_top_k};

}  // namespace

}  // namespace arenite
