// Steps that spill tensors and fetch them back, the step that waits for them, and those that keep
// booleans as bits.
#include <algorithm>
#include <cstring>

#include "operand_checks.hpp"
#include "registry.hpp"
#include "spill_file.hpp"

namespace arenite {

namespace {

// Copies a tensor to a spilled memory: a file, or memory of the caller.
class SpillStep final : public Step {
 public:
  explicit SpillStep(const Operands& operands)
      : source_(operands.inputs[0]->data), copy_(*operands.outputs[0]) {}

  void run() override {
    if (copy_.file != nullptr) {
      copy_.file->write(copy_.offset, source_, copy_.size);
    } else {
      std::memcpy(copy_.data, source_, copy_.size);
    }
  }

 private:
  const std::byte* source_;
  const TensorView& copy_;
};

// Copies it back.
class FetchStep final : public Step {
 public:
  explicit FetchStep(const Operands& operands)
      : copy_(*operands.inputs[0]), target_(operands.outputs[0]->data) {}

  void run() override {
    if (copy_.file != nullptr) {
      copy_.file->read(copy_.offset, target_, copy_.size);
    } else {
      std::memcpy(target_, copy_.data, copy_.size);
    }
  }

 private:
  const TensorView& copy_;
  std::byte* target_;
};

// The session waits before it runs this step, which itself does nothing.
class WaitStep final : public Step {
 public:
  void run() override {}
};

// A byte for 8 booleans, the first in its lowest bit.
class PackBitsStep final : public Step {
 public:
  explicit PackBitsStep(const Operands& operands)
      : source_(operands.inputs[0]->data),
        count_(operands.inputs[0]->size),
        target_(operands.outputs[0]->data) {}

  void run() override {
    for (std::size_t first = 0; first < count_; first += 8) {
      const std::size_t bits = std::min<std::size_t>(8, count_ - first);
      unsigned packed = 0;
      for (std::size_t bit = 0; bit < bits; ++bit) {
        packed |= (source_[first + bit] != std::byte{0} ? 1U : 0U) << bit;
      }
      target_[first / 8] = static_cast<std::byte>(packed);
    }
  }

 private:
  const std::byte* source_;
  std::size_t count_;
  std::byte* target_;
};

class UnpackBitsStep final : public Step {
 public:
  explicit UnpackBitsStep(const Operands& operands)
      : source_(operands.inputs[0]->data),
        target_(operands.outputs[0]->data),
        count_(operands.outputs[0]->size) {}

  void run() override {
    for (std::size_t i = 0; i < count_; ++i) {
      target_[i] = source_[i / 8] >> (i % 8) & std::byte{1};
    }
  }

 private:
  const std::byte* source_;
  std::byte* target_;
  std::size_t count_;
};

void require_packed(const Operands& operands, const TensorView& booleans, const TensorView& bytes) {
  require(operands, booleans.type == program::Type::boolean && bytes.type == program::Type::uint8,
          "it packs booleans to bytes");
  require(operands, bytes.size == booleans.size / 8 + (booleans.size % 8 != 0 ? 1 : 0),
          "it needs a byte for 8 booleans");
}

std::unique_ptr<Step> make_pack_bits(const Operands& operands) {
  require_arity(operands, 1, 1);
  require_packed(operands, *operands.inputs[0], *operands.outputs[0]);
  return std::make_unique<PackBitsStep>(operands);
}

std::unique_ptr<Step> make_unpack_bits(const Operands& operands) {
  require_arity(operands, 1, 1);
  require_packed(operands, *operands.outputs[0], *operands.inputs[0]);
  return std::make_unique<UnpackBitsStep>(operands);
}

void require_same(const Operands& operands) {
  const auto& source = *operands.inputs[0];
  const auto& result = *operands.outputs[0];
  require(operands, source.type == result.type && source.shape == result.shape,
          "its operands differ in type or shape");
}

std::unique_ptr<Step> make_spill(const Operands& operands) {
  require_arity(operands, 1, 1);
  require_same(operands);
  require(operands, !operands.inputs[0]->is_constant, "a constant cannot be spilled");
  require(operands, operands.outputs[0]->is_spilled,
          "it spills to a memory that is not for spilled tensors");
  return std::make_unique<SpillStep>(operands);
}

std::unique_ptr<Step> make_fetch(const Operands& operands) {
  require_arity(operands, 1, 1);
  require_same(operands);
  require(operands, operands.inputs[0]->is_spilled, "it fetches a tensor that is not spilled");
  return std::make_unique<FetchStep>(operands);
}

std::unique_ptr<Step> make_wait(const Operands& operands) {
  require(operands, operands.inputs.empty() && operands.outputs.empty(),
          "it must have no operands");
  return std::make_unique<WaitStep>();
}

const Registration spill{program::Operator::Spill, make_spill};
const Registration fetch{program::Operator::Fetch, make_fetch};
const Registration wait{program::Operator::Wait, make_wait};
const Registration pack_bits{program::Operator::PackBits, make_pack_bits};
const Registration unpack_bits{program::Operator::UnpackBits, make_unpack_bits};

}  // namespace

}  // namespace arenite
