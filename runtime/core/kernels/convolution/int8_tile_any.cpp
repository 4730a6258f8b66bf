// Products of tiles for any processor.
#include <algorithm>

#include "kernels/convolution/int8_tile.hpp"

namespace arenite {

namespace {

constexpr std::size_t kStride = 512 * sizeof(std::int16_t) + 64;

void copy(const Int8Runs& runs, std::byte* to) {
  const std::uint8_t* from = runs.data;
  for (std::size_t run = 0; run < runs.count; ++run) {
    auto* differences = reinterpret_cast<std::int16_t*>(to);
    for (std::size_t i = 0; i < runs.size; ++i) {
      differences[i] = static_cast<std::int16_t>((from[i] ^ runs.flip) - runs.zero);
    }
    from += runs.step;
    to += runs.step_to;
  }
}

void multiply(const Int8Tile& tile, const std::int8_t* weights, std::size_t panel_bytes,
              std::size_t panels, const std::int32_t* start, std::int32_t* sums) {
  for (std::size_t panel = 0; panel < panels; ++panel) {
    for (std::size_t p = 0; p < tile.pixels; ++p) {
      const auto* from = reinterpret_cast<const std::int16_t*>(tile.slab + p * tile.stride);
      std::int32_t* to = sums + p * kInt8SumStride + panel * kInt8Panel;
      const std::int32_t* first = start != nullptr ? start + panel * kInt8Panel : to;
      std::uint32_t made[kInt8Panel];
      std::copy(first, first + kInt8Panel, made);
      const std::int8_t* quad = weights + panel * panel_bytes;
      for (std::size_t q = 0; q < tile.quads; ++q) {
        for (std::size_t j = 0; j < kInt8Panel; ++j) {
          made[j] +=
              static_cast<std::uint32_t>(from[0] * quad[4 * j] + from[1] * quad[4 * j + 1] +
                                         from[2] * quad[4 * j + 2] + from[3] * quad[4 * j + 3]);
        }
        from += kInt8Quad;
        quad += kInt8Panel * kInt8Quad;
      }
      std::copy(made, made + kInt8Panel, to);
    }
  }
}

}  // namespace

Int8TileKernel int8_tile_for_any() {
  return {Int8TileKernel::Form::differences, 12, 512 / kInt8Quad, kStride, copy, multiply};
}

}  // namespace arenite
