// Instance normalisation: mean 0 and deviation 1 of each channel of an image, then scale and shift.
#include <algorithm>
#include <cmath>

#include "kernels/parallel.hpp"
#include "operand_checks.hpp"
#include "registry.hpp"

namespace arenite {

namespace {

// Channels are treated a few at a time, pixel after pixel, as they lie.
constexpr std::size_t kChannels = 16;

class InstanceNormStep final : public Step {
 public:
  InstanceNormStep(const Operands& operands, float epsilon)
      : source_(operands.inputs[0]->as<float>()),
        scale_(operands.inputs[1]->as<float>()),
        shift_(operands.inputs[2]->as<float>()),
        target_(operands.outputs[0]->as<float>()),
        num_images_(operands.inputs[0]->shape.front()),
        num_channels_(operands.inputs[0]->shape.back()),
        epsilon_(epsilon),
        threads_(operands.threads) {
    const std::size_t count = operands.inputs[0]->num_elements();
    num_pixels_ = count == 0 ? 0 : count / num_images_ / num_channels_;
  }

  void run() override {
    if (num_pixels_ == 0) { return; }
    const std::size_t groups = (num_channels_ + kChannels - 1) / kChannels;
    parallel(threads_, num_images_ * groups, 8 * kChannels * num_pixels_,
             [this, groups](std::size_t first, std::size_t count) {
               for (std::size_t i = first; i < first + count; ++i) {
                 const std::size_t channel = i % groups * kChannels;
                 const std::size_t rest = num_channels_ - channel;
                 // A width that is known at compile time lets the compiler take whole pixels as
                 // vectors.
                 if (rest >= kChannels) {
                   normalise(i / groups, channel, [] { return kChannels; });
                 } else {
                   normalise(i / groups, channel, [rest] { return rest; });
                 }
               }
             });
  }

 private:
  template <typename Width>
  void normalise(std::size_t image, std::size_t channel, const Width& width) const {
    const std::size_t start = image * num_pixels_ * num_channels_ + channel;
    float means[kChannels] = {};
    mean_of(start, width, means, [](float x, std::size_t) { return x; });
    float factors[kChannels] = {};
    mean_of(start, width, factors,
            [&means](float x, std::size_t c) { return (x - means[c]) * (x - means[c]); });
    float terms[kChannels] = {};
    for (std::size_t c = 0; c < width(); ++c) {
      factors[c] = scale_[channel + c] / std::sqrt(factors[c] + epsilon_);
      terms[c] = shift_[channel + c];
    }
    for (std::size_t pixel = 0; pixel < num_pixels_; ++pixel) {
      const float* from = source_ + start + pixel * num_channels_;
      float* to = target_ + start + pixel * num_channels_;
      for (std::size_t c = 0; c < width(); ++c) {
        to[c] = (from[c] - means[c]) * factors[c] + terms[c];
      }
    }
  }

  // Sums of some pixels are added to the whole: the sum of very many would lose the small ones.
  template <typename Width, typename Value>
  void mean_of(std::size_t start, const Width& width, float* means, const Value& value) const {
    constexpr std::size_t kPixels = 128;
    for (std::size_t first = 0; first < num_pixels_; first += kPixels) {
      float sums[kChannels] = {};
      for (std::size_t pixel = first; pixel < std::min(first + kPixels, num_pixels_); ++pixel) {
        const float* from = source_ + start + pixel * num_channels_;
        for (std::size_t c = 0; c < width(); ++c) { sums[c] += value(from[c], c); }
      }
      for (std::size_t c = 0; c < width(); ++c) {
        means[c] += sums[c] / static_cast<float>(num_pixels_);
      }
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

std::unique_ptr<Step> make_instance_norm(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_InstanceNorm();
  require_arity(operands, 3, 3);
  const auto& source = *operands.inputs[0];
  require(operands, source.rank() >= 2 && source.shape == operands.outputs[0]->shape,
          "input and output differ");
  require_floats(operands);
  for (const std::size_t position : {1u, 2u}) {
    require(operands, operands.inputs[position]->num_elements() == source.shape.back(),
            "its scale or shift does not fit");
  }
  return std::make_unique<InstanceNormStep>(operands, attributes.epsilon());
}

const Registration registered{program::Operator::InstanceNorm, make_instance_norm};

}  // namespace

}  // namespace arenite
