// Products of a few pixels, packed for them, and any number of panels: ARM64's tiles.
#pragma once

#include <cstddef>

#include "kernels/processor.hpp"

namespace arenite {

#ifdef ARENITE_ARM64
constexpr bool kPacksPixels = true;
#else
constexpr bool kPacksPixels = false;
#endif

constexpr std::size_t kPackedPixels = 6;
// Steps of the depth that are packed by vectors.
constexpr std::size_t kPackedSteps = 4;

// Floats of so much depth of packed pixels.
constexpr std::size_t packed_pixels_size(std::size_t depth) {
  return kPackedPixels * (depth + depth % 2);
}

// By two steps of the depth, and there by pixels: an even number of them.
void pack_pixels(const float* const* pixels, std::size_t num_pixels, std::size_t depth,
                 float* packed);

// The same of pixels that lie side by side: step k of all of them begins at columns + k * stride.
void pack_columns(const float* columns, std::size_t stride, std::size_t num_pixels,
                  std::size_t depth, float* packed);

// Each sum takes one product after another as in any Tile, and is the same to the bit.
struct PackedTile {
  const float* pixels;
  std::size_t num_pixels;
  std::size_t depth;
  const float* filter;  // the first panel, from the first depth on
  std::size_t panel_stride;
  std::size_t channels;        // from the first panel on; the last one may have fewer than kPanel
  float* const* result;        // by pixel, the first channel
  const float* const* addend;  // the same; null: none
  const float* bias;           // null: zeros
  bool is_first;               // false: go on with the sums in the result
  bool adds_up;                // add the sums to the result
  bool is_last;                // clamp
  float min;
  float max;
};

void multiply_packed(const PackedTile& tile);

}  // namespace arenite
