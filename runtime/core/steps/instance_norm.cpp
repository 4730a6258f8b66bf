#include "steps/instance_norm.hpp"

#include <cmath>

#include "kernels/parallel.hpp"
#include "operand_checks.hpp"

namespace arenite {

namespace {

class InstanceNormStep final : public Step {
 public:
  InstanceNormStep(const Operands& operands, float epsilon)
      : source_(operands.inputs[0]->as<float>()), scale_(operands.inputs[1]->as<float>()),
        shift_(operands.inputs[2]->as<float>()), target_(operands.outputs[0]->as<float>()),
        num_images_(operands.inputs[0]->shape.front()),
        num_channels_(operands.inputs[0]->shape.back()), epsilon_(epsilon),
        threads_(operands.threads) {
    const std::size_t count = operands.inputs[0]->num_elements();
    num_pixels_ = count == 0 ? 0 : count / num_images_ / num_channels_;
  }

  void run() override {
    parallel(threads_, num_images_ * num_channels_, 8 * num_pixels_,
             [this](std::size_t first, std::size_t count) {
               for (std::size_t i = first; i < first + count; ++i) {
                 channel(i / num_channels_, i % num_channels_);
               }
             });
  }

  const char* backend() const override { return "arenite"; }

 private:
  void channel(std::size_t image, std::size_t channel) const {
    const std::size_t start = image * num_pixels_ * num_channels_ + channel;
    float sum = 0;
    for (std::size_t i = 0; i < num_pixels_; ++i) {
      sum += source_[start + i * num_channels_];
    }
    const float mean = sum / static_cast<float>(num_pixels_);
    float squares = 0;
    for (std::size_t i = 0; i < num_pixels_; ++i) {
      const float distance = source_[start + i * num_channels_] - mean;
      squares += distance * distance;
    }
    const float factor =
        scale_[channel] / std::sqrt(squares / static_cast<float>(num_pixels_) + epsilon_);
    for (std::size_t i = 0; i < num_pixels_; ++i) {
      const std::size_t at = start + i * num_channels_;
      target_[at] = (source_[at] - mean) * factor + shift_[channel];
    }
  }

  const float* source_;
  const float* scale_;
  const float* shift_;
  float* target_;
  std::size_t num_images_;
  std::size_t num_channels_;
  std::size_t num_pixels_ = 0;
  float epsilon_;
  pthreadpool_t threads_;
};

}  // namespace

std::unique_ptr<Step> make_instance_norm(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_InstanceNorm();
  require_arity(operands, 3, 3);
  const auto& source = *operands.inputs[0];
  require(operands, source.rank() >= 2 && source.shape == operands.outputs[0]->shape,
          "input and output differ");
  for (const auto* view : {operands.inputs[0], operands.inputs[1], operands.inputs[2],
                           operands.outputs[0]}) {
    require(operands, view->type == program::Type::float32, "it computes in numbers alone");
  }
  for (const std::size_t position : {1u, 2u}) {
    require(operands, operands.inputs[position]->num_elements() == source.shape.back(),
            "its scale or shift does not fit");
  }
  return std::make_unique<InstanceNormStep>(operands, attributes.epsilon());
}

}  // namespace arenite
