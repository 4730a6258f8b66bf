// Sums and means of images, which are pools with one window.
#pragma once

#include <algorithm>
#include <limits>
#include <memory>

#include "kernels/quantised.hpp"
#include "operand_checks.hpp"
#include "steps/images.hpp"
#include "steps/pool_step.hpp"
#include "steps/reduce_layout.hpp"

namespace arenite {

// Whether all axes between images and channels are reduced, and no other.
inline bool reduces_images(const TensorView& source, const ReducedAxes& is_reduced) {
  const std::size_t rank = source.rank();
  if (rank < 3 || is_reduced[rank - 1] || (is_reduced[0] && source.shape[0] != 1)) { return false; }
  return std::all_of(is_reduced.begin() + 1, is_reduced.begin() + rank - 1,
                     [](bool is) { return is; });
}

// The sum or mean of an image is a pool with one window.
template <typename T, typename Sum, typename Kernel>
std::unique_ptr<Step> make_of_images(const Operands& operands, Kernel kernel) {
  const auto source = as_rows<const T>(*operands.inputs[0]);
  kernel.window = {
      {static_cast<std::uint32_t>(source.rows), static_cast<std::uint32_t>(source.columns)},
      {1, 1},
      {1, 1},
      {0, 0, 0, 0}};
  kernel.is_average = true;
  kernel.is_sum = operands.step.kernel_as_Reduce()->function() == program::ReduceFunction::sum;
  const std::size_t channels = source.channels;
  const auto& stated = *operands.outputs[0];
  require(operands, stated.rows == nullptr || (stated.rank() >= 3 && stated.shape[1] == 1),
          "its output does not lie in one row");
  const Image<T> result{stated.as<T>(), 1, 1, channels, channels, channels, stated.rows};
  return make_pool_step<T, Sum>(operands, kernel, source, result);
}

template <typename T>
std::unique_ptr<Step> make_of_quantised_images(const Operands& operands) {
  const Scale in = Scale::of(*operands.inputs[0]);
  const Scale out = Scale::of(*operands.outputs[0]);
  Int8Pool kernel{};
  kernel.ratio = in.scale / out.scale;
  kernel.source_zero_point = in.zero_point;
  kernel.zero_point = out.zero_point;
  kernel.min = std::numeric_limits<T>::min();
  kernel.max = std::numeric_limits<T>::max();
  return make_of_images<T, std::int32_t>(operands, kernel);
}

inline std::unique_ptr<Step> make_sum_of_images(const Operands& operands) {
  constexpr std::size_t kMostSummed = std::size_t{1} << 23;  // bytes whose sum fits 32 bits
  const auto& source = *operands.inputs[0];
  if (source.num_elements() / source.shape[0] / source.shape.back() > kMostSummed) {
    return nullptr;
  }
  switch (source.type) {
    case program::Type::float32: {
      Pool kernel{};
      kernel.min = -std::numeric_limits<float>::infinity();
      kernel.max = std::numeric_limits<float>::infinity();
      return make_of_images<float, float>(operands, kernel);
    }
    case program::Type::int8: return make_of_quantised_images<std::int8_t>(operands);
    case program::Type::uint8: return make_of_quantised_images<std::uint8_t>(operands);
    default: return nullptr;
  }
}

}  // namespace arenite
