// What all tiles of a Winograd convolution share.
#pragma once

#include "kernels/convolution/winograd.hpp"

namespace arenite {

// Columns of the products that are kept: two panels.
constexpr std::size_t kProductColumns = 2 * kPanel;

struct WinogradJob {
  const WinogradConvolution& convolution;
  const Image<const float>& source;
  const Image<float>& result;
  RowRange rows;
  std::size_t tile_columns;
  std::size_t point_stride;    // floats from a point to the next
  std::size_t chunk_stride;    // floats from a chunk of kPanel channels to the next
  std::size_t product_stride;  // floats from the products at a point to the next
};

// Makes `count` tiles from the first one on, in panels of channels, in scratch of this thread.
using MakeWinogradTiles = void (*)(const WinogradJob& job, std::size_t first, std::size_t count,
                                   std::size_t first_panel, std::size_t end_panel, float* scratch);

// That for the processor that this runs on.
MakeWinogradTiles make_winograd_tiles();

}  // namespace arenite
