// Packs filters that are computed in the run for the next convolution.
#include "kernels/convolution/pack_filter.hpp"

#include "convolution_checks.hpp"
#include "registry.hpp"

namespace arenite {

namespace {

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
  const std::size_t taps = weights.shape[2] * weights.shape[3];
  const FilterPlaces places{
      weights.shape[0] / groups, weights.shape[1] * taps,
      weights.shape[1],          taps,
      weights.shape[2],          static_cast<std::ptrdiff_t>(weights.shape[3]),
      weights.shape[3],          1};
  const std::size_t group_size = packed.num_elements() / groups;
  return make_plain_step(
      [=, from = weights.as<float>(), to = packed.as<float>(), threads = operands.threads] {
        for (std::size_t group = 0; group < groups; ++group) {
          pack_filter(from + group * places.outputs * places.output_stride, places,
                      to + group * group_size, threads);
        }
      });
}

const Registration registered{program::Operator::PackFilter, make_pack_filter};

}  // namespace

}  // namespace arenite
