// Elements as numbers, whatever their type.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "tensor_view.hpp"

namespace arenite {

// How integers stand for numbers: scale * (q - zero_point). Plain numbers: 1 and 0.
struct Scale {
  float scale = 1.0f;
  std::int32_t zero_point = 0;

  static Scale of(const TensorView& view) {
    return view.is_quantised() ? Scale{view.scales[0], view.zero_point} : Scale{};
  }

  template <typename T>
  float number(T value) const {
    return scale * static_cast<float>(static_cast<std::int32_t>(value) - zero_point);
  }

  template <typename T>
  T integer(float value) const {
    const float wanted = std::nearbyint(value / scale) + static_cast<float>(zero_point);
    const auto low = static_cast<float>(std::numeric_limits<T>::min());
    const auto high = static_cast<float>(std::numeric_limits<T>::max());
    return static_cast<T>(std::min(std::max(wanted, low), high));  // NaN becomes the lowest
  }
};

}  // namespace arenite
