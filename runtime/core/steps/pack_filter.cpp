// Packs filters that are computed in the run for the next convolution.
#include "kernels/convolution/pack_filter.hpp"

#include "convolution_checks.hpp"
#include "registry.hpp"

namespace arenite {

namespace {

class PackFilterStep final : public Step {
 public:
  PackFilterStep(const Operands& operands, std::size_t groups)
      : weights_(operands.inputs[0]->as<float>()),
        packed_(operands.outputs[0]->as<float>()),
        groups_(groups),
        threads_(operands.threads) {
    const auto& shape = operands.inputs[0]->shape;
    const std::size_t taps = shape[2] * shape[3];
    places_ = {shape[0] / groups, shape[1] * taps,
               shape[1],          taps,
               shape[2],          static_cast<std::ptrdiff_t>(shape[3]),
               shape[3],          1};
    packed_size_ = operands.outputs[0]->num_elements() / groups;
  }

  void run() override {
    for (std::size_t group = 0; group < groups_; ++group) {
      pack_filter(weights_ + group * places_.outputs * places_.output_stride, places_,
                  packed_ + group * packed_size_, threads_);
    }
  }

 private:
  const float* weights_;
  float* packed_;
  std::size_t groups_;
  FilterPlaces places_;
  std::size_t packed_size_;  // floats of a group
  pthreadpool_t threads_;
};

std::unique_ptr<Step> make_pack_filter(const Operands& operands) {
  require_arity(operands, 1, 1);
  const auto& weights = *operands.inputs[0];
  const auto& packed = *operands.outputs[0];
  require(operands, weights.type == program::Type::float32 && packed.type == program::Type::float32,
          "only float32 filters are packed");
  require(operands, weights.rank() == 4 && weights.size > 0,
          "its input must be a filter of rank 4");
  const std::size_t groups = operands.step.kernel_as_PackFilter()->groups();
  require(operands,
          packed.rank() == 5 && groups > 0 && weights.shape[0] % groups == 0 &&
              has_panels(packed, groups, weights.shape[0]),
          "its output must have panels of 16 outputs");
  require(operands,
          packed.shape[1] == weights.shape[2] && packed.shape[2] == weights.shape[3] &&
              packed.shape[3] == weights.shape[1],
          "the panels have other taps or inputs than the filter");
  return std::make_unique<PackFilterStep>(operands, groups);
}

const Registration registered{program::Operator::PackFilter, make_pack_filter};

}  // namespace

}  // namespace arenite
