// Keys or values of one head as they are kept, and as 32-bit floats.
#pragma once

#include <algorithm>
#include <cstddef>

#include "kernels/cache_rows.hpp"
#include "kernels/half.hpp"

namespace arenite {

// What keys or values are kept as. All but floats are converted some rows at a time.
enum class RowKind { floats, halves, bytes };

struct AttentionRows {
  const std::byte* data;
  RowKind kind;
  std::size_t stride;  // bytes from one row to the next
  std::size_t width;   // elements of a row, up to kLargestHead
};

constexpr std::size_t kConvertedFloats = 2048;  // at a time: 8 KiB, which stay in the first cache

// Calls use(floats, stride, done, count) on rows [first, first + total) as 32-bit floats, some of
// them at a time, of which `done` came before. Other rows are converted into `memory`.
template <typename Use>
void with_floats(const AttentionRows& rows, std::size_t first, std::size_t total, float* memory,
                 const Use& use) {
  const std::byte* const from = rows.data + first * rows.stride;
  if (rows.kind == RowKind::floats) {
    use(reinterpret_cast<const float*>(from), rows.stride / sizeof(float), std::size_t{0}, total);
    return;
  }
  const std::size_t most = kConvertedFloats / std::max<std::size_t>(rows.width, 1);
  for (std::size_t done = 0; done < total; done += most) {
    const std::size_t count = std::min(most, total - done);
    const std::byte* const some = from + done * rows.stride;
    if (rows.kind == RowKind::halves) {
      widen_rows(reinterpret_cast<const Half*>(some), rows.stride / sizeof(Half), count, rows.width,
                 memory);
    } else {
      read_cache_rows(some, rows.stride, count, rows.width, memory);
    }
    use(memory, rows.width, done, count);
  }
}

}  // namespace arenite
