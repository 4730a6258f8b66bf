// Products of a tile of pixels and some panels of a packed filter, with sums in registers.
#pragma once

#include <array>
#include <cstddef>

#include "kernels/convolution/convolve.hpp"

namespace arenite {

// Limits of a tile on any processor. Between pixels lie a few floats more than the depth: at a
// multiple of the size of a page they would all fall into the same few lines of the first cache.
constexpr std::size_t kTilePixels = 14;
constexpr std::size_t kTileDepth = 512;
constexpr std::size_t kTileStride = kTileDepth + 16;
constexpr std::size_t kTilePanels = 4;
constexpr std::size_t kTileSums = 28 * 16;

// Each sum starts from bias and addend, or from what the result holds, and takes one product after
// another in the order of the depth: it is the same to the bit in a tile of any shape.
struct Tile {
  const float* copies;         // by pixel, kTileStride apart
  const float* const* source;  // by pixel; null: multiply the copies
  const float* const* rows;    // of the window under the first pixel; null: none of these
  std::size_t num_rows;        // the depth is that of each
  const float* filter;         // the first panel, from the first depth on
  std::size_t panel_stride;
  std::size_t depth;
  float* const* result;        // by pixel
  const float* const* addend;  // by pixel; null: none
  std::size_t channel;         // where the panels start in result and addend
  std::size_t next;            // from here to the next tile in the result, more or less
  const float* bias;           // of the panels; null: go on with the sums in the result
  bool is_last;                // clamp
  float min;
  float max;
};

using MultiplyTile = void (*)(const Tile& tile);

// Floats from a pixel to the next for which windows are read row by row where they lie: of images
// of three colours.
constexpr std::array<std::size_t, 2> kTileSteps = {3, 6};

// By panels and pixels, less one.
using TileMultiplies = std::array<std::array<MultiplyTile, kTilePixels>, kTilePanels>;

// What one kind of processor multiplies.
struct TileKernels {
  std::size_t pixels;           // most of a tile
  std::size_t pixels_in_place;  // for one panel, if they are to be fast where they are not copied
  // Null where that many sums do not fit the registers.
  TileMultiplies multiply;
  // The same with the lower half of the last panel alone: null for more than two.
  TileMultiplies multiply_to_half;
  // By kTileSteps: null but for the most pixels, or one less, of one or two panels.
  std::array<TileMultiplies, kTileSteps.size()> multiply_rows;
  // Copies `count` times `size` floats that lie `step` apart to where they lie kTileStride apart.
  // Up to a vector behind each copy is written too.
  void (*copy)(const float* from, std::size_t step, std::size_t count, std::size_t size, float* to);
};

// Those for the processor that this runs on.
const TileKernels& tile_kernels();

}  // namespace arenite
