#include "loaded_weights.hpp"

#include <cstring>
#include <utility>

#include "../operand_checks.hpp"

namespace arenite::xnnpack {

namespace {

// Whole numbers up to here are exact in 32-bit floating point.
constexpr std::size_t kMostWeights = std::size_t{1} << 24;

}  // namespace

bool LoadedWeights::can_number(const Operands& operands) {
  const auto& filter = *operands.inputs[1];
  const auto* bias = optional_input(operands, 2);
  return filter.type == program::Type::float32 && filter.rank() > 0 && filter.size > 0 &&
         filter.num_elements() < kMostWeights &&
         (bias == nullptr || bias->type == program::Type::float32);
}

LoadedWeights::LoadedWeights(const Operands& operands)
    : loader_(*operands.loader),
      rows_(operands.inputs[1]->shape[0]),
      columns_(operands.inputs[1]->num_elements() / rows_),
      filter_(*operands.inputs[1]) {
  const auto* bias = optional_input(operands, 2);
  const std::size_t size = rows_ * columns_;
  numbers_.resize(size + rows_);
  for (std::size_t i = 0; i < size; ++i) {
    numbers_[i] = static_cast<float>(i + 1);
  }
  for (std::size_t row = 0; row < rows_; ++row) {
    numbers_[size + row] = -static_cast<float>(row + 1);
  }
  filter_.data = reinterpret_cast<std::byte*>(numbers_.data());
  if (bias != nullptr) {
    bias_ = *bias;
    bias_->data = reinterpret_cast<std::byte*>(numbers_.data() + size);
  }
}

std::unique_ptr<Step> LoadedWeights::make(Node& node, xnn_status status) {
  const TensorView& window = loader_.window();
  std::memset(window.data, 0, window.size);  // what is left over is not to be taken for a weight
  Capture capture(window.data, window.size, filter_.size);
  auto step = node.make(status, true);
  if (step == nullptr || capture.size() > window.size) {
    return nullptr;
  }
  Packing packing = Packing::of(window.as<float>(), capture.size() / sizeof(float), rows_, columns_,
                                bias_.has_value());
  if (packing.block_rows == 0) {
    return nullptr;
  }
  loader_.pack(std::move(packing), capture.size());
  return step;
}

}  // namespace arenite::xnnpack
