#include "unpacked_filter.hpp"

#include "../kernels/convolution/convolve.hpp"

namespace arenite::xnnpack {

UnpackedFilter::UnpackedFilter(const TensorView& packed, std::size_t groups, std::size_t outputs)
    : view_(packed) {
  const std::size_t depth = packed.num_elements() / packed.shape[0] / kPanel;
  const std::size_t per_group = outputs / groups;
  const std::size_t panels = packed.shape[0] / groups;
  elements_.resize(outputs * depth);
  float* to = elements_.data();
  for (std::size_t group = 0; group < groups; ++group) {
    for (std::size_t output = 0; output < per_group; ++output, to += depth) {
      const std::size_t panel = group * panels + output / kPanel;
      const float* from = packed.as<float>() + panel * depth * kPanel + output % kPanel;
      for (std::size_t k = 0; k < depth; ++k) {
        to[k] = from[k * kPanel];
      }
    }
  }
  view_.shape.pop_back();
  view_.shape[0] = outputs;
  view_.data = reinterpret_cast<std::byte*>(elements_.data());
  view_.size = elements_.size() * sizeof(float);
}

}  // namespace arenite::xnnpack
