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
  std::size_t filter_stride;   // floats from a point of a transformed panel to the next
};

// Tiles from the first one on.
struct TileRange {
  std::size_t first;
  std::size_t count;
};

// Panels that are transformed, from the first one on.
struct FilterPart {
  float* data;
  std::size_t first;
  std::size_t end;

  float* panel(const WinogradJob& job, std::size_t index) const {
    return data + (index - first) * job.convolution.tile.num_points() * job.filter_stride;
  }
};

struct WinogradKernels {
  // Transforms some input channels of a panel of the filter.
  void (*enter_filter)(const WinogradJob& job, std::size_t panel, std::size_t first_channel,
                       std::size_t end_channel, float* transformed);
  // Takes tiles of the source apart into points.
  void (*enter)(const WinogradJob& job, TileRange tiles, float* points);
  // Makes the tiles of the result in these panels; points are followed by room for products.
  void (*leave)(const WinogradJob& job, TileRange tiles, const FilterPart& filter, float* points);
  // Tiles that weights are loaded for together.
  std::size_t tiles_together;
};

// Those of a tile for the processor that this runs on.
WinogradKernels winograd_kernels(const WinogradTile& tile);

}  // namespace arenite
