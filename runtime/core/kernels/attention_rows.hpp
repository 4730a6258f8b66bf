// Keys or values of one head as they are kept, and as 32-bit floats.
#pragma once

#include <algorithm>
#include <cstddef>

#include "kernels/half.hpp"

namespace arenite {

// Rows of 32-bit floats, or of 16-bit floats, which are converted some rows at a time.
struct AttentionRows {
  const std::byte* data;
  bool are_halves;
  std::size_t stride;  // elements from one row to the next
  std::size_t width;   // elements of a row, up to kLargestHead
};

constexpr std::size_t kConvertedFloats = 2048;  // at a time: 8 KiB, which stay in the first cache

// Calls use(floats, stride, done, count) on rows [first, first + total) as 32-bit floats, some of
// them at a time, of which `done` came before. Halves are converted into `memory`.
template <typename Use>
void with_floats(const AttentionRows& rows, std::size_t first, std::size_t total, float* memory,
                 const Use& use) {
  if (!rows.are_halves) {
    const auto* from = reinterpret_cast<const float*>(rows.data) + first * rows.stride;
    use(from, rows.stride, std::size_t{0}, total);
    return;
  }
  const auto* from = reinterpret_cast<const Half*>(rows.data) + first * rows.stride;
  const std::size_t most = kConvertedFloats / std::max<std::size_t>(rows.width, 1);
  for (std::size_t done = 0; done < total; done += most) {
    const std::size_t count = std::min(most, total - done);
    widen_rows(from + done * rows.stride, rows.stride, count, rows.width, memory);
    use(memory, rows.width, done, count);
  }
}

}  // namespace arenite
