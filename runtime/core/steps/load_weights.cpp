// Loads or decodes weights into memory in each run.
#include <cstring>
#include <optional>

#include "coding/coded_weights.hpp"
#include "mapped_file.hpp"
#include "operand_checks.hpp"
#include "registry.hpp"

namespace arenite {

namespace {

class LoadWeightsStep final : public Step {
 public:
  explicit LoadWeightsStep(const Operands& operands)
      : file_(operands.file),
        weights_(operands.inputs[0]->data),
        size_(operands.inputs[0]->size),
        window_(operands.outputs[0]->data) {
    const auto& weights = *operands.inputs[0];
    if (weights.coded_size != 0) {
      coded_.emplace(weights.data, weights.coded_size, weights.num_elements(),
                     "step '" + operands.step.name()->str() + "'", *operands.decoder);
    }
  }

  void run() override {
    if (!coded_.has_value()) {
      std::memcpy(window_, weights_, size_);
      file_->release(weights_, size_);
      return;
    }
    auto* window = reinterpret_cast<float*>(window_);
    if (!coded_->is_plain()) { std::memset(window_, 0, size_); }
    coded_->decode();
    coded_->visit([window](std::size_t position, float value) { window[position] = value; });
  }

  bool decodes() const override { return coded_.has_value(); }

 private:
  const MappedFile* file_;
  const std::byte* weights_;
  std::size_t size_;
  std::byte* window_;
  std::optional<CodedWeights> coded_;
};

std::unique_ptr<Step> make_load_weights(const Operands& operands) {
  require_arity(operands, 1, 1);
  const auto& weights = *operands.inputs[0];
  const auto& window = *operands.outputs[0];
  require(operands, weights.is_constant, "its weights must be constant");
  require(operands, weights.type == window.type, "its window is of another type");
  require(operands, weights.coded_size == 0 || weights.type == program::Type::float32,
          "only float32 weights can be coded");
  require(operands, weights.size > 0, "it has no weights");
  if (window.size < weights.size) {
    refuse(operands, "its window has " + std::to_string(window.size) + " B; its weights have " +
                         std::to_string(weights.size));
  }
  return std::make_unique<LoadWeightsStep>(operands);
}

const Registration registered{program::Operator::LoadWeights, make_load_weights};

}  // namespace

}  // namespace arenite
