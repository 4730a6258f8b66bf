// Steps that spill tensors and fetch them back, the step that waits for them, and those that keep
// booleans as bits.
#include <algorithm>
#include <cstring>

#include "operand_checks.hpp"
#include "registry.hpp"
#include "spill_file.hpp"

namespace arenite {

namespace {

void require_packed(const Operands& operands, const TensorView& booleans, const TensorView& bytes) {
  require(operands, booleans.type == program::Type::boolean && bytes.type == program::Type::uint8,
          "it packs booleans to bytes");
  require(operands, bytes.size == booleans.size / 8 + (booleans.size % 8 != 0 ? 1 : 0),
          "it needs a byte for 8 booleans");
}

// Makes a byte of 8 booleans, the first in its lowest bit.
std::unique_ptr<Step> make_pack_bits(const Operands& operands) {
  require_arity(operands, 1, 1);
  require_packed(operands, *operands.inputs[0], *operands.outputs[0]);
  return make_plain_step([source = operands.inputs[0]->data, count = operands.inputs[0]->size,
                          target = operands.outputs[0]->data] {
    for (std::size_t first = 0; first < count; first += 8) {
      const std::size_t bits = std::min<std::size_t>(8, count - first);
      unsigned packed = 0;
      for (std::size_t bit = 0; bit < bits; ++bit) {
        packed |= (source[first + bit] != std::byte{0} ? 1U : 0U) << bit;
      }
      target[first / 8] = static_cast<std::byte>(packed);
    }
  });
}

std::unique_ptr<Step> make_unpack_bits(const Operands& operands) {
  require_arity(operands, 1, 1);
  require_packed(operands, *operands.outputs[0], *operands.inputs[0]);
  return make_plain_step([source = operands.inputs[0]->data, target = operands.outputs[0]->data,
                          count = operands.outputs[0]->size] {
    for (std::size_t i = 0; i < count; ++i) { target[i] = source[i / 8] >> (i % 8) & std::byte{1}; }
  });
}

void require_same(const Operands& operands) {
  const auto& source = *operands.inputs[0];
  const auto& result = *operands.outputs[0];
  require(operands, source.type == result.type && source.shape == result.shape,
          "its operands differ in type or shape");
}

// Copies a tensor to a spilled memory: a file, or memory of the caller.
std::unique_ptr<Step> make_spill(const Operands& operands) {
  require_arity(operands, 1, 1);
  require_same(operands);
  require(operands, !operands.inputs[0]->is_constant, "a constant cannot be spilled");
  require(operands, operands.outputs[0]->is_spilled,
          "it spills to a memory that is not for spilled tensors");
  return make_plain_step([source = operands.inputs[0]->data, &copy = *operands.outputs[0]] {
    if (copy.file != nullptr) {
      copy.file->write(copy.offset, source, copy.size);
    } else {
      std::memcpy(copy.data, source, copy.size);
    }
  });
}

// Copies it back.
std::unique_ptr<Step> make_fetch(const Operands& operands) {
  require_arity(operands, 1, 1);
  require_same(operands);
  require(operands, operands.inputs[0]->is_spilled, "it fetches a tensor that is not spilled");
  return make_plain_step([&copy = *operands.inputs[0], target = operands.outputs[0]->data] {
    if (copy.file != nullptr) {
      copy.file->read(copy.offset, target, copy.size);
    } else {
      std::memcpy(target, copy.data, copy.size);
    }
  });
}

// The session waits before it runs this step, which itself does nothing.
std::unique_ptr<Step> make_wait(const Operands& operands) {
  require(operands, operands.inputs.empty() && operands.outputs.empty(),
          "it must have no operands");
  return make_plain_step([] {});
}

const Registration registered[] = {
    {program::Operator::Spill, make_spill},
    {program::Operator::Fetch, make_fetch},
    {program::Operator::Wait, make_wait},
    {program::Operator::PackBits, make_pack_bits},
    {program::Operator::UnpackBits, make_unpack_bits},
};

}  // namespace

}  // namespace arenite
