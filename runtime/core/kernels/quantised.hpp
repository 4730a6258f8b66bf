// Quantised elements as numbers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/requantise.hpp"
#include "operand_checks.hpp"
#include "tensor_view.hpp"

namespace arenite {

// An integer q stands for scale * (q - zero_point). Plain numbers: 1 and 0.
struct Scale {
  float scale = 1.0f;
  std::int32_t zero_point = 0;

  static Scale of(const TensorView& view) {
    return view.is_quantised() ? Scale{view.scales[0], view.zero_point} : Scale{};
  }

  template <typename T>
  float dequantise(T value) const {
    using Wide = std::conditional_t<(sizeof(T) < 4), std::int32_t, std::int64_t>;
    return scale * static_cast<float>(static_cast<Wide>(value) - zero_point);
  }

  template <typename T>
  T quantise(float value) const {
    return Rounding<T>(std::numeric_limits<T>::min(), std::numeric_limits<T>::max(),
                       zero_point)(value / scale);
  }
};

// Converts to an integer type with saturation; NaN becomes 0.
template <typename T, typename Number>
T saturate(Number value) {
  if (std::isnan(value)) { return 0; }
  if (value <= static_cast<Number>(std::numeric_limits<T>::min())) {
    return std::numeric_limits<T>::min();
  }
  const bool is_beyond = value >= static_cast<Number>(std::numeric_limits<T>::max());
  return is_beyond ? std::numeric_limits<T>::max() : static_cast<T>(value);
}

// A bound of results as an integer of the view's scale, within T; halves are rounded away from
// zero.
template <typename T>
std::int64_t quantised_bound(float number, const TensorView& view) {
  const auto steps = saturate<std::int32_t>(std::round(number / view.scales[0]));
  return std::clamp<std::int64_t>(std::int64_t{steps} + view.zero_point,
                                  std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
}

// Requires that no operand has a scale for each channel.
inline void require_one_scale(const Operands& operands) {
  for (const auto* list : {&operands.inputs, &operands.outputs}) {
    for (const auto* view : *list) {
      require(operands, view == nullptr || view->scales.size() <= 1,
              "an operand has a scale for each channel");
    }
  }
}

}  // namespace arenite
