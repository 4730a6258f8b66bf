// What all tiles of a Winograd convolution share.
#pragma once

#include "kernels/convolution/pixel_rows.hpp"
#include "kernels/convolution/winograd.hpp"
#include "kernels/parallel.hpp"

namespace arenite {

// Columns of the products that are kept: two panels.
constexpr std::size_t kProductColumns = 2 * kPanel;

// Results of a tile in a direction from which on it can be narrow.
constexpr std::size_t kLeastNarrowed = 4;

// Tiles along a direction of the result. The last ones may be narrow, by two results: then fewer
// points lie beyond the border.
struct TilesAlong {
  std::size_t size;  // results of a tile that is not narrow
  std::size_t full;  // tiles that are not narrow
  std::size_t count;

  TilesAlong(std::size_t results, std::size_t length) : size(results) {
    count = divide_up(length, size);
    full = count - (size < kLeastNarrowed ? 0 : std::min(count, (count * size - length) / 2));
  }
  std::size_t start(std::size_t tile) const {
    return tile < full ? tile * size : full * size + (tile - full) * (size - 2);
  }
  // The tile that a result lies in.
  std::size_t of(std::size_t result) const {
    if (result < full * size || size < kLeastNarrowed) { return result / size; }
    return full + (result - full * size) / (size - 2);
  }
};

struct TilePlace {
  std::size_t top;  // of the result
  std::size_t left;
  bool is_narrow[2];  // in rows and in columns
};

// Tiles of some rows of a result, in an order in which those that are not narrow in a direction
// are neighbours: at points that narrow ones lack these are multiplied alone.
struct TileGrid {
  TilesAlong rows;
  TilesAlong columns;
  std::size_t first;  // row of tiles
  std::size_t end;

  TileGrid(const WinogradTile& tile, std::size_t num_rows, std::size_t num_columns, RowRange some)
      : rows(tile.rows(), num_rows),
        columns(tile.columns(), num_columns),
        first(rows.of(some.first)),
        end(some.count == 0 ? first : rows.of(some.first + some.count - 1) + 1) {}

  std::size_t count() const { return (end - first) * columns.count; }
  std::size_t full_rows() const { return std::clamp(rows.full, first, end) - first; }

  // Those that are not narrow in rows, in columns or both.
  Range full(bool in_rows, bool in_columns) const {
    const std::size_t begin = in_columns ? full_rows() * (columns.count - columns.full) : 0;
    const std::size_t all = full_rows() * columns.count;
    const std::size_t rest = (end - first - full_rows()) * columns.full;
    const std::size_t last = in_rows ? all : in_columns ? all + rest : count();
    return {begin, last - begin};
  }

  // Of full rows, which come first, narrow columns do; of narrow rows full columns.
  TilePlace place(std::size_t index) const {
    const std::size_t narrow = columns.count - columns.full;
    const bool in_narrow_row = index >= full_rows() * columns.count;
    if (in_narrow_row) { index -= full_rows() * columns.count; }
    const std::size_t before =
        in_narrow_row ? (end - first - full_rows()) * columns.full : full_rows() * narrow;
    const bool is_behind = index >= before;
    if (is_behind) { index -= before; }
    const bool in_narrow_column = in_narrow_row == is_behind;
    const std::size_t wide = in_narrow_column ? narrow : columns.full;
    const std::size_t row = first + (in_narrow_row ? full_rows() : 0) + index / wide;
    const std::size_t column = index % wide + (in_narrow_column ? columns.full : 0);
    return {rows.start(row), columns.start(column), {in_narrow_row, in_narrow_column}};
  }
};

struct WinogradJob {
  const WinogradConvolution& convolution;
  const Image<const float>& source;
  const Image<float>& result;
  RowRange rows;
  TileGrid grid;
  std::size_t point_stride;    // floats from a point to the next
  std::size_t chunk_stride;    // floats from a chunk of kPanel channels to the next
  std::size_t product_stride;  // floats from the products at a point to the next
  std::size_t filter_stride;   // floats from a point of a transformed panel to the next
};

// Some tiles, with their points and products.
struct TileBlock {
  const WinogradJob& job;
  std::size_t first;
  std::size_t count;
  float* points;
  float* products;
  // Those that have the points which narrow ones lack in rows, in columns or in both, from the
  // first one of the block on. At these points they are kept as if there were no others.
  Range full[2][2];

  TileBlock(const WinogradJob& of, Range tiles, float* scratch)
      : job(of),
        first(tiles.first),
        count(tiles.count),
        points(scratch),
        products(scratch + of.convolution.tile.num_points() * of.point_stride) {
    for (std::size_t in_rows = 0; in_rows < 2; ++in_rows) {
      for (std::size_t in_columns = 0; in_columns < 2; ++in_columns) {
        const Range all = job.grid.full(in_rows == 1, in_columns == 1);
        const std::size_t from = std::max(all.first, first);
        const std::size_t end = std::min(all.first + all.count, first + count);
        full[in_rows][in_columns] = {from - first, from < end ? end - from : 0};
      }
    }
  }
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
  void (*enter)(const WinogradJob& job, Range tiles, float* points);
  // Makes the tiles of the result in these panels; points are followed by room for products.
  void (*leave)(const WinogradJob& job, Range tiles, const FilterPart& filter, float* points);
  // Tiles that weights are loaded for together.
  std::size_t tiles_together;
};

// Those of a tile for the processor that this runs on.
WinogradKernels winograd_kernels(const WinogradTile& tile);

}  // namespace arenite
