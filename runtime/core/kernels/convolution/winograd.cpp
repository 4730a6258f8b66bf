#include "kernels/convolution/winograd.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>

#include "kernels/convolution/winograd_job.hpp"

namespace arenite {

namespace {

std::size_t round_up(std::size_t value, std::size_t step) {
  return (value + step - 1) / step * step;
}

// The tiles of some rows of a result, and how many of them are made together.
struct Blocks {
  std::size_t tile_columns;
  std::size_t first;
  std::size_t end;
  std::size_t count;
  std::size_t tiles;  // even: products are made of two at least
};

Blocks blocks_of(std::size_t tile, std::size_t inputs, std::size_t columns, RowRange rows) {
  // Their points stay in the second cache, and the filter is read once for all of them.
  const std::size_t most = inputs < 256 ? 28 : 56;
  Blocks made{};
  made.tile_columns = (columns + tile - 1) / tile;
  made.first = rows.first / tile * made.tile_columns;
  made.end = (rows.first + rows.count + tile - 1) / tile * made.tile_columns;
  const std::size_t total = made.end - made.first;
  made.count = (total + most - 1) / most;
  made.tiles = round_up((total + made.count - 1) / std::max<std::size_t>(made.count, 1), 2);
  return made;
}

// Points lie apart by an odd number of lines of the cache, which spreads them over its sets.
std::size_t point_stride(std::size_t tiles, std::size_t inputs) {
  return round_up(inputs, kPanel) * tiles + kPanel;
}

std::size_t product_stride(std::size_t tiles) { return tiles * kProductColumns + kPanel; }

std::size_t floats_of_thread(std::size_t tile, std::size_t inputs, std::size_t tiles) {
  return (tile + 2) * (tile + 2) * (point_stride(tiles, inputs) + product_stride(tiles));
}

// A range of the tiles and panels, which threads take one after another.
struct Work {
  WinogradJob job;
  Blocks blocks;
  std::size_t num_panels;
  std::size_t part;  // panels that are made together
  std::size_t num_parts;
  float* scratch;
  std::size_t floats_of_thread;
  MakeWinogradTiles make_tiles;
  std::atomic<std::size_t> next;
};

// Each thread has scratch of its own and takes the next block when it is done.
void run(void* context, std::size_t thread) {
  Work& work = *static_cast<Work*>(context);
  for (;;) {
    const std::size_t item = work.next.fetch_add(1, std::memory_order_relaxed);
    if (item >= work.blocks.count * work.num_parts) {
      return;
    }
    const std::size_t first = work.blocks.first + item / work.num_parts * work.blocks.tiles;
    const std::size_t panel = item % work.num_parts * work.part;
    if (first < work.blocks.end) {  // blocks of an even size may be one fewer
      work.make_tiles(work.job, first, std::min(work.blocks.tiles, work.blocks.end - first), panel,
                      std::min(panel + work.part, work.num_panels),
                      work.scratch + thread * work.floats_of_thread);
    }
  }
}

}  // namespace

std::size_t winograd_scratch(std::size_t tile, std::size_t inputs, std::size_t columns,
                             RowRange rows, std::size_t num_threads) {
  const std::size_t tiles = blocks_of(tile, inputs, columns, rows).tiles;
  return floats_of_thread(tile, inputs, tiles) * num_threads * sizeof(float);
}

RowRange winograd_source_rows(const WinogradConvolution& convolution,
                              const Image<const float>& source, RowRange rows) {
  const std::size_t tile = convolution.tile;
  const std::size_t top = rows.first / tile * tile;
  const std::size_t bottom = round_up(rows.first + rows.count, tile) + 2;
  const std::size_t margin = convolution.padding[0];
  const std::size_t first = std::min(std::max(top, margin) - margin, source.rows);
  const std::size_t end = std::min(std::max(bottom, margin) - margin, source.rows);
  return {first, end - first};
}

void convolve_winograd(const WinogradConvolution& convolution, const Image<const float>& source,
                       const Image<float>& result, RowRange rows, void* scratch,
                       pthreadpool_t threads) {
  if (rows.count == 0) {
    return;
  }
  const std::size_t inputs = source.channels;
  const std::size_t num_threads = pthreadpool_get_threads_count(threads);
  const std::size_t num_panels = (result.channels + kPanel - 1) / kPanel;
  const Blocks blocks = blocks_of(convolution.tile, inputs, result.columns, rows);
  // Where blocks are too few for the threads they are made in parts: tiles are taken apart again,
  // but of the filter each thread reads less.
  const bool enough = num_threads == 1 || blocks.count >= 4 * num_threads;
  const std::size_t wanted = enough ? 1 : (2 * num_threads + blocks.count - 1) / blocks.count;
  const std::size_t part = round_up((num_panels + wanted - 1) / wanted, 2);
  Work work{
      {convolution, source, result, rows, blocks.tile_columns, point_stride(blocks.tiles, inputs),
       blocks.tiles * kPanel, product_stride(blocks.tiles)},
      blocks,
      num_panels,
      part,
      (num_panels + part - 1) / part,
      static_cast<float*>(scratch),
      floats_of_thread(convolution.tile, inputs, blocks.tiles),
      make_winograd_tiles(),
      {0}};
  if (threads == nullptr) {
    run(&work, 0);
  } else {
    pthreadpool_parallelize_1d(threads, run, &work, num_threads, 0);
  }
}

}  // namespace arenite
