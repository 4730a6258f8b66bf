#include "kernels/convolution/winograd.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>

#include "kernels/convolution/winograd_job.hpp"
#include "kernels/parallel.hpp"

namespace arenite {

namespace {

// Bytes of transformed panels that stay in the second cache beside the points of some tiles.
constexpr std::size_t kMostFilterBytes = 5 << 19;

// Input channels of a panel that a thread transforms before it takes others.
constexpr std::size_t kFilterChannels = 64;

// Tiles of a block at least, unless there are fewer: as many as registers hold the products of.
constexpr std::size_t kLeastTiles = 6;

// How many times as many tiles are in a block if they are lines, with fewer points.
constexpr std::size_t kTilesOfLines = 4;

// Points lie apart by an odd number of lines of the cache, which spreads them over its sets.
std::size_t point_stride(std::size_t tiles, std::size_t inputs) {
  return round_up(inputs, kPanel) * tiles + kPanel;
}

std::size_t product_stride(std::size_t tiles) { return tiles * kProductColumns + kPanel; }

std::size_t filter_stride(std::size_t inputs) { return (inputs + 1) * kPanel; }

std::size_t floats_of_block(const WinogradTile& tile, std::size_t inputs, std::size_t tiles) {
  return tile.num_points() * (point_stride(tiles, inputs) + product_stride(tiles));
}

// What is made together.
struct Division {
  std::size_t tiles;  // of a block; even: products are made of two at least
  std::size_t blocks;
  std::size_t buffers;  // blocks that have room at a time
  std::size_t panels;   // of the filter, transformed together: a part

  bool keeps_points() const { return buffers == blocks; }
};

// Estimated cost of a tile by an input channel, in multiply-adds of a vector. For each part of the
// filter the points of a tile are made again unless they are kept.
float cost(const Division& division, const WinogradTile& tile, std::size_t num_tiles,
           std::size_t num_panels, std::size_t tiles_together) {
  constexpr float kEntering = 2.0f;  // of a point, as many multiply-adds
  const std::size_t parts = divide_up(num_panels, division.panels);
  const std::size_t last = num_tiles - (division.blocks - 1) * division.tiles;
  const std::size_t groups = (division.blocks - 1) * divide_up(division.tiles, tiles_together) +
                             divide_up(last, tiles_together);
  // Each group loads weights from the first cache, and each block from the second.
  const float loads = static_cast<float>(groups + division.blocks) / static_cast<float>(num_tiles);
  const float entered = division.keeps_points() ? 1.0f : static_cast<float>(parts);
  const float odd = division.panels == 1 && num_panels > 1 ? 0.25f : 0.0f;  // half a vector
  return static_cast<float>(tile.num_points()) *
         (static_cast<float>(num_panels * kPanel / 4) * (1.0f + loads + odd) + entered * kEntering);
}

// The best that fits in so many bytes.
Division divide(const WinogradTile& tile, std::size_t inputs, std::size_t outputs,
                std::size_t num_tiles, std::size_t num_threads, std::size_t bytes,
                std::size_t tiles_together) {
  const std::size_t num_panels = divide_up(outputs, kPanel);
  const std::size_t panel_bytes = tile.num_points() * filter_stride(inputs) * sizeof(float);
  // Points of a block stay in the second cache, and the filter is read once for all of them.
  const std::size_t most_tiles = (inputs < 256 ? 28 : 56) * (tile.is_line() ? kTilesOfLines : 1);
  const std::size_t wanted = std::max<std::size_t>(
      {divide_up(num_tiles, most_tiles), std::min(num_threads, num_tiles), 1});
  Division best{};
  float least = 0.0f;
  for (std::size_t tiles = std::max<std::size_t>(round_up(divide_up(num_tiles, wanted), 2), 2);
       tiles >= 2; tiles -= 2) {
    const std::size_t blocks = divide_up(num_tiles, tiles);
    const std::size_t most_panels =
        std::max<std::size_t>(kMostFilterBytes / panel_bytes / 2 * 2, blocks == 1 ? 2 : 4);
    const std::size_t buffer_bytes = floats_of_block(tile, inputs, tiles) * sizeof(float);
    for (const std::size_t buffers : {std::min(num_threads, blocks), blocks}) {
      if (bytes < buffers * buffer_bytes + panel_bytes) { continue; }
      const std::size_t held = (bytes - buffers * buffer_bytes) / panel_bytes;
      // Where points are kept, more panels than stay in the second cache are of no use.
      std::size_t panels = std::min({held, num_panels, buffers == blocks ? most_panels : held});
      if (panels > 1 && panels < num_panels) { panels = panels / 2 * 2; }
      const Division division{tiles, blocks, buffers, panels};
      const float found = cost(division, tile, num_tiles, num_panels, tiles_together);
      if (best.tiles == 0 || found < least) {
        best = division;
        least = found;
      }
    }
    if (tiles <= kLeastTiles && best.tiles != 0) { break; }
  }
  return best;
}

struct Work {
  WinogradJob job;
  Division division;
  FilterPart filter;
  float* points;
  std::size_t floats_of_block;
  WinogradKernels kernels;
  std::atomic<std::size_t> next;
};

// Each thread takes the next piece when it is done.
void run_filter(void* context, std::size_t /*thread*/) {
  Work& work = *static_cast<Work*>(context);
  const std::size_t inputs = work.job.source.channels;
  const std::size_t pieces = divide_up(inputs, kFilterChannels);
  for (;;) {
    const std::size_t item = work.next.fetch_add(1, std::memory_order_relaxed);
    const std::size_t panel = work.filter.first + item / pieces;
    if (panel >= work.filter.end) { return; }
    const std::size_t first = item % pieces * kFilterChannels;
    work.kernels.enter_filter(work.job, panel, first, std::min(first + kFilterChannels, inputs),
                              work.filter.panel(work.job, panel));
  }
}

void run_tiles(void* context, std::size_t thread) {
  Work& work = *static_cast<Work*>(context);
  for (;;) {
    const std::size_t block = work.next.fetch_add(1, std::memory_order_relaxed);
    if (block >= work.division.blocks) { return; }
    const std::size_t first = block * work.division.tiles;
    const Range tiles{first, std::min(work.division.tiles, work.job.grid.count() - first)};
    const bool keeps_points = work.division.keeps_points();
    float* points = work.points + (keeps_points ? block : thread) * work.floats_of_block;
    if (!keeps_points || work.filter.first == 0) { work.kernels.enter(work.job, tiles, points); }
    work.kernels.leave(work.job, tiles, work.filter, points);
  }
}

void run_on(pthreadpool_t threads, std::size_t num_threads, pthreadpool_task_1d_t task,
            Work& work) {
  work.next = 0;
  if (num_threads == 1) {
    task(&work, 0);
  } else {
    pthreadpool_parallelize_1d(threads, task, &work, num_threads, 0);
  }
}

}  // namespace

std::size_t winograd_scratch(const WinogradTile& tile, std::size_t inputs, std::size_t num_rows,
                             std::size_t columns, RowRange rows, std::size_t num_threads) {
  const std::size_t num_tiles = TileGrid(tile, num_rows, columns, rows).count();
  const std::size_t tiles = std::min(round_up(num_tiles, 2), kLeastTiles);
  return (tile.num_points() * filter_stride(inputs) +
          num_threads * floats_of_block(tile, inputs, tiles)) *
         sizeof(float);
}

RowRange winograd_source_rows(const WinogradConvolution& convolution,
                              const Image<const float>& source, RowRange rows) {
  const std::size_t taps = convolution.tile.kernel[0];
  const std::size_t result_rows =
      source.rows + convolution.padding[0] + convolution.padding[2] + 1 - taps;
  const TilesAlong tiles(convolution.tile.rows(), result_rows);
  const std::size_t top = tiles.start(tiles.of(rows.first));
  const std::size_t bottom = tiles.start(tiles.of(rows.first + rows.count - 1) + 1) + taps - 1;
  const std::size_t margin = convolution.padding[0];
  const std::size_t first = std::min(std::max(top, margin) - margin, source.rows);
  const std::size_t end = std::min(std::max(bottom, margin) - margin, source.rows);
  return {first, end - first};
}

void convolve_winograd(const WinogradConvolution& convolution, const Image<const float>& source,
                       const Image<float>& result, RowRange rows, pthreadpool_t threads) {
  if (rows.count == 0) { return; }
  const WinogradTile& tile = convolution.tile;
  const std::size_t inputs = source.channels;
  const std::size_t num_threads =
      std::min(convolution.num_threads, pthreadpool_get_threads_count(threads));
  const std::size_t num_panels = divide_up(result.channels, kPanel);
  const WinogradKernels kernels = winograd_kernels(tile);
  const TileGrid grid(tile, result.rows, result.columns, rows);
  const Division division = divide(tile, inputs, result.channels, grid.count(), num_threads,
                                   convolution.scratch_bytes, kernels.tiles_together);
  float* filter = static_cast<float*>(convolution.scratch);
  Work work{{convolution, source, result, rows, grid, point_stride(division.tiles, inputs),
             division.tiles * kPanel, product_stride(division.tiles), filter_stride(inputs)},
            division,
            {filter, 0, 0},
            filter + division.panels * tile.num_points() * filter_stride(inputs),
            floats_of_block(tile, inputs, division.tiles),
            kernels,
            {0}};
  for (std::size_t panel = 0; panel < num_panels; panel += division.panels) {
    work.filter.first = panel;
    work.filter.end = std::min(panel + division.panels, num_panels);
    run_on(threads, num_threads, run_filter, work);
    run_on(threads, num_threads, run_tiles, work);
  }
}

}  // namespace arenite
