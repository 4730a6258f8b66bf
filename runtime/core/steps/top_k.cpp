// The largest elements of each row of the last axis, and where they are; of equal ones the first.
#include <algorithm>

#include "of_type.hpp"
#include "operand_checks.hpp"
#include "registry.hpp"

namespace arenite {

namespace {

// Keeps the largest elements sorted in the outputs, so that no other memory is needed.
template <typename T, typename Index>
void sort_row(const T* source, std::size_t length, T* values, Index* indices, std::size_t most) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < length; ++i) {
    if (count == most && !(source[i] > values[count - 1])) { continue; }
    count = std::min(count + 1, most);
    std::size_t place = count - 1;
    for (; place > 0 && source[i] > values[place - 1]; --place) {
      values[place] = values[place - 1];
      indices[place] = indices[place - 1];
    }
    values[place] = source[i];
    indices[place] = static_cast<Index>(i);
  }
}

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
              values.shape.back() <= source.shape.back() &&
              source.shape.back() < (std::size_t{1} << 31),
          "its k does not fit the row");
  require(operands, source.type == values.type, "input and output differ in type");
  return of_number_type(source.type, [&](auto number) {
    return of_index_type(operands.outputs[1]->type, [&](auto place) {
      using T = decltype(number);
      using Index = decltype(place);
      return make_plain_step([from = source.as<T>(), length = source.shape.back(),
                              to = values.as<T>(), indices = operands.outputs[1]->as<Index>(),
                              most = values.shape.back(), count = values.num_elements()] {
        for (std::size_t i = 0; i * most < count; ++i) {
          sort_row(from + i * length, length, to + i * most, indices + i * most, most);
        }
      });
    });
  });
}

const Registration registered{program::Operator::TopK, make_top_k};

}  // namespace

}  // namespace arenite
