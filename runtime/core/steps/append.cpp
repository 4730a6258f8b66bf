// The step that makes the last rows of a stream.
#include <cstring>

#include "operand_checks.hpp"
#include "registry.hpp"

namespace arenite {

namespace {

// Moves rows down to the front of the result, which may lie in their place or begin below it, and
// adds new ones behind.
std::unique_ptr<Step> make_append(const Operands& operands) {
  require_arity(operands, 2, 2);
  const TensorView& kept = *operands.inputs[0];
  const TensorView& added = *operands.inputs[1];
  const TensorView& result = *operands.outputs[0];
  require(operands, kept.type == result.type && added.type == result.type,
          "its operands differ in type");
  require(operands, added.size <= result.size, "what it adds is longer than its result");
  require(operands, result.size - added.size <= kept.size,
          "what it keeps and adds is not as long as its result");
  require(operands,
          added.data + added.size <= result.data || result.data + result.size <= added.data,
          "what it adds shares bytes with its result");
  const std::size_t num_kept = result.size - added.size;
  return make_plain_step([kept = kept.data + (kept.size - num_kept), added = added.data,
                          num_added = added.size, target = result.data, num_kept] {
    std::memmove(target, kept, num_kept);
    std::memcpy(target + num_kept, added, num_added);
  });
}

const Registration registered{program::Operator::Append, make_append};

}  // namespace

}  // namespace arenite
