// Slices of a tensor, by index.
#include <algorithm>
#include <cstring>

#include "kernels/parallel.hpp"
#include "of_type.hpp"
#include "operand_checks.hpp"
#include "registry.hpp"
#include "validation.hpp"

namespace arenite {

namespace {

struct Extent {
  std::size_t batch = 1;   // axes that data and indices share
  std::size_t outer = 1;   // of the data, before the axis
  std::size_t length = 1;  // of the axis
  std::size_t bytes = 1;   // of a slice behind the axis
  std::size_t count = 1;   // indices of a batch
};

template <typename Index>
class GatherStep final : public Step {
 public:
  GatherStep(const Operands& operands, const Extent& extent)
      : step_(operands.step),
        data_(operands.inputs[0]->data),
        indices_(operands.inputs[1]->as<Index>()),
        target_(operands.outputs[0]->data),
        extent_(extent),
        num_slices_(operands.outputs[0]->size == 0 ? 0 : operands.outputs[0]->size / extent.bytes),
        threads_(operands.threads) {}

  void check() const override {
    const auto length = static_cast<std::int64_t>(extent_.length);
    for (std::size_t i = 0; i < extent_.batch * extent_.count; ++i) {
      require_index(step_, indices_[i], -length, length);
    }
  }

  void run() override {
    parallel(threads_, num_slices_, extent_.bytes, [this](std::size_t first, std::size_t n) {
      for (std::size_t i = first; i < first + n; ++i) {
        const std::size_t row = i / extent_.count;
        const std::size_t place = i % extent_.count;
        const Index index = indices_[row / extent_.outer * extent_.count + place];
        std::memcpy(target_ + i * extent_.bytes,
                    data_ + (row * extent_.length + inside(index)) * extent_.bytes, extent_.bytes);
      }
    });
  }

 private:
  // Negative indices count from the end. A run cannot fail: indices out of range are clamped.
  std::size_t inside(Index index) const {
    const auto length = static_cast<Index>(extent_.length);
    const Index positive = index < 0 ? index + length : index;
    return static_cast<std::size_t>(std::min(std::max(positive, Index{0}), length - 1));
  }

  const program::Step& step_;
  const std::byte* data_;
  const Index* indices_;
  std::byte* target_;
  Extent extent_;
  std::size_t num_slices_;
  pthreadpool_t threads_;
};

std::unique_ptr<Step> make_gather(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_Gather();
  require_arity(operands, 2, 2);
  const auto& data = *operands.inputs[0];
  const auto& indices = *operands.inputs[1];
  const auto& target = *operands.outputs[0];
  const std::size_t axis = attributes.axis();
  const std::size_t batch_axes = attributes.batch_axes();
  require(operands, axis < data.rank() && batch_axes <= axis && batch_axes <= indices.rank(),
          "the axis is out of range");
  Extent extent;
  extent.bytes = element_size(data.type);
  for (std::size_t i = 0; i < data.rank(); ++i) {
    (i < batch_axes ? extent.batch
     : i < axis     ? extent.outer
     : i == axis    ? extent.length
                    : extent.bytes) *= data.shape[i];
    require(operands, i >= batch_axes || indices.shape[i] == data.shape[i],
            "data and indices differ in a batch");
  }
  for (std::size_t i = batch_axes; i < indices.rank(); ++i) { extent.count *= indices.shape[i]; }
  require(operands, data.type == target.type, "input and output differ in type");
  require(operands, extent.length > 0 && extent.length < (1u << 31), "the axis has no elements");
  require(operands, target.size == extent.batch * extent.outer * extent.count * extent.bytes,
          "the output does not have one slice for each index");
  return of_index_type(indices.type, [&](auto index) -> std::unique_ptr<Step> {
    return std::make_unique<GatherStep<decltype(index)>>(operands, extent);
  });
}

const Registration registered{program::Operator::Gather, make_gather};

}  // namespace

}  // namespace arenite
