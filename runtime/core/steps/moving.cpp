// Steps that spill tensors and fetch them back, and the step that waits for them.
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

}  // namespace

}  // namespace arenite
