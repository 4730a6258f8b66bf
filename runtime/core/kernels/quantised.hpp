// Elements as numbers, whatever their type.
#pragma once

#include <algorithm>
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
    // Adding and taking away this leaves the nearest integer, of two equally near the even one;
    // unlike std::nearbyint, compilers do it for many elements at once.
    constexpr float kRounder = 12'582'912.0f;
    const auto low = static_cast<float>(std::numeric_limits<T>::min() - zero_point);
    const auto high = static_cast<float>(std::numeric_limits<T>::max() - zero_point);
    const float steps = std::min(std::max(low, value / scale), high);  // NaN becomes the lowest
    return static_cast<T>(static_cast<std::int32_t>((steps + kRounder) - kRounder) + zero_point);
  }
};

}  // namespace arenite
