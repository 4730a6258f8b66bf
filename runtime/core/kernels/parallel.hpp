// Splits work on a range among threads if it is large enough.
#pragma once

#include <pthreadpool.h>

#include <algorithm>
#include <cstddef>

namespace arenite {

constexpr std::size_t divide_up(std::size_t count, std::size_t by) { return (count + by - 1) / by; }
constexpr std::size_t round_up(std::size_t count, std::size_t to) {
  return divide_up(count, to) * to;
}

// Calls work(first, count) on parts of [0, total). `cost` is of one index, in bytes touched
// or the like; small totals stay on the calling thread. Allocates nothing.
template <typename Work>
void parallel(pthreadpool_t threads, std::size_t total, std::size_t cost, const Work& work) {
  constexpr std::size_t kWorthwhile = 1 << 16;
  if (threads == nullptr || total * std::max<std::size_t>(cost, 1) < kWorthwhile) {
    work(std::size_t{0}, total);
    return;
  }
  const std::size_t tile =
      std::max<std::size_t>(1, kWorthwhile / 4 / std::max<std::size_t>(cost, 1));
  pthreadpool_parallelize_1d_tile_1d(
      threads,
      [](void* context, std::size_t first, std::size_t count) {
        (*static_cast<const Work*>(context))(first, count);
      },
      const_cast<Work*>(&work), total, tile, 0);
}

}  // namespace arenite
