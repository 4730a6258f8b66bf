// A window that slides over rows and columns.
#pragma once

#include <array>
#include <cstdint>

namespace arenite {

struct SlidingWindow {
  std::array<std::uint32_t, 2> kernel;
  std::array<std::uint32_t, 2> strides;
  std::array<std::uint32_t, 2> dilations;
  std::array<std::uint32_t, 4> padding;  // top, right, bottom, left
};

}  // namespace arenite
