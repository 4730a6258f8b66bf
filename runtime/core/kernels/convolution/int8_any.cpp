// Convolutions of 8-bit integers for processors without kernels of their own.
#include "kernels/processor.hpp"

#if !defined(ARENITE_X86) && !defined(ARENITE_ARM64)

#include "kernels/convolution/int8_kernel.hpp"

namespace arenite {

namespace {

void make_pixel(const Int8Tile& tile, std::size_t pixel) {
  const std::int32_t* begin = tile.is_first ? tile.start : tile.sums_of(pixel);
  const auto addend = static_cast<std::uint32_t>(tile.addends == nullptr ? 0 : tile.addends[pixel]);
  std::int32_t sums[kInt8Panel];
  for (std::size_t j = 0; j < kInt8Panel; ++j) {
    sums[j] = static_cast<std::int32_t>(static_cast<std::uint32_t>(begin[j]) + addend);
  }
  const std::int8_t* quad = tile.weights;
  for (std::size_t run = 0; run < tile.num_runs; ++run) {
    const std::uint8_t* from = tile.runs[run] + pixel * tile.step;
    for (std::size_t q = 0; q < tile.quads; ++q) {
      for (std::size_t j = 0; j < kInt8Panel; ++j) {
        const std::int32_t sum = from[0] * quad[4 * j] + from[1] * quad[4 * j + 1] +
                                 from[2] * quad[4 * j + 2] + from[3] * quad[4 * j + 3];
        sums[j] = static_cast<std::int32_t>(static_cast<std::uint32_t>(sums[j]) +
                                            static_cast<std::uint32_t>(sum));
      }
      from += kInt8Quad;
      quad += kInt8Panel * kInt8Quad;
    }
  }
  if (tile.is_last) {
    requantise(tile.store, tile.scales, sums, tile.channels, tile.to + pixel * tile.step_to);
  } else {
    std::memcpy(tile.sums_of(pixel), sums, sizeof sums);
  }
}

}  // namespace

const Int8Kernel& int8_kernel_for_any() {
  static constexpr MakeInt8Pixels kPixels[] = {make_pixel};
  static const Int8Kernel kernel{false,
                                 1,
                                 {kInt8Panel, 1, kPixels},
                                 {kInt8Panel, 1, kPixels},
                                 copy_int8,
                                 nullptr,
                                 fill_int8,
                                 gather_int8,
                                 add_up_int8<std::uint8_t>,
                                 nullptr,
                                 finish_int8};
  return kernel;
}

}  // namespace arenite

#endif
