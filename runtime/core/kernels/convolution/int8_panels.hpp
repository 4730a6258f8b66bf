// Tiles of pixels whose sums, of one or two panels of a packed filter, never leave the registers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/convolution/convolve_int8.hpp"

namespace arenite {

// Pixels of a tile, at most: of two panels, whose sums leave four registers, and of one.
constexpr std::size_t kInt8PixelsOfTwo = 14;
constexpr std::size_t kInt8PixelsOfOne = 16;
// The same where products are of 16 bits: of one panel, and of half of one.
constexpr std::size_t kInt8PixelsOfWidened = 6;
constexpr std::size_t kInt8PixelsOfHalf = 8;

// One or two panels, for all pixels of a part of a row.
struct Int8Panels {
  const std::uint8_t* const* runs;  // where each begins for the first pixel
  std::size_t num_runs;
  std::size_t quads;  // of a run
  std::size_t step;   // bytes from one pixel to the next
  const std::int8_t* weights;
  std::size_t panel_bytes;
  const std::int32_t* start;
  const float* scales;
  std::size_t channels;  // that are kept of them
  const QuantisedStore& store;
  bool may_overflow;
  std::uint8_t* to;
  std::size_t step_to;
  const std::int32_t* addends;  // of each pixel's sums; null: none
};

// Makes a tile from one of the pixels on.
using MakeInt8Tile = void (*)(const Int8Panels& panels, std::size_t pixel);

// Those of one pixel, of two and so on, for one panel or two; null where the processor has no sums
// of four products of bytes.
const MakeInt8Tile* int8_tiles_for_vnni(std::size_t panels);

// Those for so many channels, of one panel at most; null without AVX2. They take the source in 16
// bits, of each quad the first and the third byte before the second and the fourth.
const MakeInt8Tile* int8_tiles_for_avx2(std::size_t channels);

}  // namespace arenite
