// Products of a tile of pixels and some panels of a packed filter, with sums in registers.
#pragma once

#include <array>
#include <cstddef>

#include "kernels/convolution/convolve.hpp"
#include "kernels/convolution/packed_tile.hpp"

namespace arenite {

// Limits of a tile on any processor. Between copied pixels lie a few floats more than the depth: at
// a multiple of the size of a page they would all fall into the same few lines of the first cache.
constexpr std::size_t kTilePixels = kPacksPixels ? kPackedPixels : 16;
constexpr std::size_t kTileDepth = 512;
constexpr std::size_t kTileStride = kTileDepth + 16;
constexpr std::size_t kTilePanels = 4;
constexpr std::size_t kTileSums = 28 * 16;

// Each sum starts from bias and addend, or from what the result holds, and takes one product after
// another in the order of the depth: it is the same to the bit in a tile of any shape. Pixels lie
// as far apart as their step says, in floats.
struct Tile {
  const float* const* runs;  // floats that follow one another under the window of the first pixel
  std::size_t num_runs;
  std::size_t run_length;
  std::size_t source_step;
  const float* filter;  // the first panel, from the first depth on
  std::size_t panel_stride;
  float* result;  // of the first pixel and panel
  std::size_t result_step;
  const float* addend;  // null: none
  std::size_t addend_step;
  const float* bias;  // of the panels; null: go on with the sums in the result
  bool is_last;       // clamp
  float min;
  float max;
};

using MultiplyTile = void (*)(const Tile& tile);

// By panels and pixels, less one.
using TileMultiplies = std::array<std::array<MultiplyTile, kTilePixels>, kTilePanels>;

// What one kind of processor multiplies.
struct TileKernels {
  // Most of a tile of one panel, and those of a tile of more.
  std::size_t pixels_of_panel;
  std::size_t pixels;
  // Null where that many sums do not fit the registers.
  TileMultiplies multiply;
  // The same with the lower half of the last panel alone: null for more than two.
  TileMultiplies multiply_to_half;
  // Copies `count` times `size` floats that lie `step` apart to where they lie kTileStride apart.
  // Up to a vector behind each copy is written too.
  void (*copy)(const float* from, std::size_t step, std::size_t count, std::size_t size, float* to);
};

// Those for the processor that this runs on.
const TileKernels& tile_kernels();

}  // namespace arenite
