// Rows of images that lie in no order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace arenite::fuzz {

// Returns the offset of each row in so many slots that lie `slot_size` apart, in an order that
// `below`, of a limit, draws: as many rows on as there are slots, a row has the same one.
template <typename Below>
std::vector<std::uint64_t> scattered_rows(std::size_t rows, std::size_t slots,
                                          std::size_t slot_size, const Below& below) {
  std::vector<std::size_t> order(slots);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = slots; i > 1; --i) { std::swap(order[i - 1], order[below(i)]); }
  std::vector<std::uint64_t> offsets(rows);
  for (std::size_t row = 0; row < rows; ++row) { offsets[row] = order[row % slots] * slot_size; }
  return offsets;
}

}  // namespace arenite::fuzz
