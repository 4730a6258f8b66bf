#include "packing.hpp"

#include <cmath>
#include <limits>
#include <utility>

namespace arenite {

namespace {

constexpr std::uint32_t kNowhere = std::numeric_limits<std::uint32_t>::max();

// Whether every row lies as the row `block_rows` before it, `block_size` floats on.
bool repeats(const std::vector<std::uint32_t>& places, std::size_t rows, std::size_t columns,
             std::size_t block_rows, std::size_t block_size) {
  const std::size_t shift = block_rows * columns;
  for (std::size_t i = shift; i < rows * columns; ++i) {
    if (places[i] != places[i - shift] + block_size) {
      return false;
    }
  }
  return true;
}

// Returns the stride of a block that is transposed, else 0.
std::size_t transposed_stride(const std::vector<std::uint32_t>& places, std::size_t columns) {
  if (columns < 2 || places[1] <= places[0]) {
    return 0;
  }
  const std::size_t stride = places[1] - places[0];
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i] != places[0] + i % columns * stride + i / columns) {
      return 0;
    }
  }
  return stride;
}

}  // namespace

Packing Packing::of(const float* packed, std::size_t count, std::size_t rows, std::size_t columns,
                    bool has_bias) {
  const std::size_t size = rows * columns;
  std::vector<std::uint32_t> places(size, kNowhere);
  std::vector<std::uint32_t> biases(has_bias ? rows : 0, kNowhere);
  std::size_t num_found = 0;
  std::size_t size_used = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const float number = packed[i];
    if (number == 0) {
      continue;
    }
    const float index = std::abs(number) - 1;
    auto& found = number > 0 ? places : biases;
    if (!(index >= 0 && index < static_cast<float>(found.size())) || index != std::floor(index)) {
      return {};
    }
    auto& place = found[static_cast<std::size_t>(index)];
    if (place != kNowhere) {
      continue;  // the last row again, where there are too few for a block: nobody reads that
    }
    place = static_cast<std::uint32_t>(i);
    ++num_found;
    size_used = i + 1;
  }
  if (num_found != size + biases.size()) {
    return {};
  }
  Packing packing;
  packing.columns = columns;
  packing.biases = std::move(biases);
  packing.size = size_used;
  packing.fills_all = num_found == size_used;
  packing.block_rows = rows;
  for (std::size_t block = 1; block < rows; ++block) {
    const std::uint32_t first = places[0];
    const std::uint32_t next = places[block * columns];
    if (next > first && repeats(places, rows, columns, block, next - first)) {
      packing.block_rows = block;
      packing.block_size = next - first;
      break;
    }
  }
  places.resize(packing.block_rows * columns);
  packing.first = places[0];
  packing.stride = transposed_stride(places, columns);
  if (packing.stride == 0) {
    places.shrink_to_fit();
    packing.places = std::move(places);
  }
  return packing;
}

}  // namespace arenite
