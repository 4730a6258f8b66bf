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

}  // namespace arenite
