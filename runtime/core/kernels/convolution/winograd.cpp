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

// The tiles of some rows of a result, and how many of them are made together.
struct Blocks {
  std::size_t tile_columns;
  std::size_t first;
  std::size_t end;
  std::size_t most;   // tiles of one block
  std::size_t tiles;  // even: products are made of two at least
  std::size_t count;

  bool is_one() const { return end - first <= most; }
};

Blocks blocks_of(std::size_t tile, std::size_t inputs, std::size_t columns, RowRange rows,
                 std::size_t num_threads) {
  Blocks made{};
  made.tile_columns = divide_up(columns, tile);
  made.first = rows.first / tile * made.tile_columns;
  made.end = divide_up(rows.first + rows.count, tile) * made.tile_columns;
  // Their points stay in the second cache, and the filter is read once for all of them.
  made.most = inputs < 256 ? 28 : 56;
  const std::size_t total = made.end - made.first;
  const std::size_t wanted =
      std::max<std::size_t>({divide_up(total, made.most), std::min(num_threads, total), 1});
  made.tiles = std::max<std::size_t>(round_up(divide_up(total, wanted), 2), 2);
  made.count = divide_up(total, made.tiles);
  return made;
}

// Points lie apart by an odd number of lines of the cache, which spreads them over its sets.
std::size_t point_stride(std::size_t tiles, std::size_t inputs) {
  return round_up(inputs, kPanel) * tiles + kPanel;
}

std::size_t product_stride(std::size_t tiles) { return tiles * kProductColumns + kPanel; }

std::size_t filter_stride(std::size_t inputs) { return (inputs + 1) * kPanel; }

std::size_t points_of(std::size_t tile) { return (tile + 2) * (tile + 2); }

std::size_t floats_of_thread(std::size_t tile, std::size_t inputs, std::size_t tiles) {
  return points_of(tile) * (point_stride(tiles, inputs) + product_stride(tiles));
}

// Panels that are transformed together. For each part of them the points of all tiles are made
// anew, unless they can be kept: where there is one block of them.
std::size_t panels_together(std::size_t tile, std::size_t inputs, std::size_t num_panels,
                            bool is_one_block) {
  const std::size_t bytes = points_of(tile) * filter_stride(inputs) * sizeof(float);
  const std::size_t least = is_one_block ? 2 : 4;
  return std::min(std::max(kMostFilterBytes / bytes / 2 * 2, least), num_panels);
}

struct Work {
  WinogradJob job;
  Blocks blocks;
  FilterPart filter;
  float* points;
  std::size_t floats_of_thread;
  bool keeps_points;  // each block has room of its own
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
    if (block >= work.blocks.count) { return; }
    const std::size_t first = work.blocks.first + block * work.blocks.tiles;
    const TileRange tiles{first, std::min(work.blocks.tiles, work.blocks.end - first)};
    float* points = work.points + (work.keeps_points ? block : thread) * work.floats_of_thread;
    if (!work.keeps_points || work.filter.first == 0) {
      work.kernels.enter(work.job, tiles, points);
    }
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

std::size_t winograd_scratch(std::size_t tile, std::size_t inputs, std::size_t outputs,
                             std::size_t columns, RowRange rows, std::size_t num_threads) {
  const Blocks blocks = blocks_of(tile, inputs, columns, rows, 1);
  const std::size_t num_panels = divide_up(outputs, kPanel);
  const std::size_t panels = panels_together(tile, inputs, num_panels, blocks.is_one());
  return (panels * points_of(tile) * filter_stride(inputs) +
          num_threads * floats_of_thread(tile, inputs, blocks.tiles)) *
         sizeof(float);
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
                       const Image<float>& result, RowRange rows, pthreadpool_t threads) {
  if (rows.count == 0) { return; }
  const std::size_t tile = convolution.tile;
  const std::size_t inputs = source.channels;
  const std::size_t num_threads =
      std::min(convolution.num_threads, pthreadpool_get_threads_count(threads));
  const std::size_t num_panels = divide_up(result.channels, kPanel);
  const Blocks blocks = blocks_of(tile, inputs, result.columns, rows, num_threads);
  const std::size_t part = panels_together(tile, inputs, num_panels, blocks.is_one());
  float* filter = static_cast<float*>(convolution.scratch);
  Work work{
      {convolution, source, result, rows, blocks.tile_columns, point_stride(blocks.tiles, inputs),
       blocks.tiles * kPanel, product_stride(blocks.tiles), filter_stride(inputs)},
      blocks,
      {filter, 0, 0},
      filter + part * points_of(tile) * filter_stride(inputs),
      floats_of_thread(tile, inputs, blocks.tiles),
      blocks.count <= num_threads,
      winograd_kernels(),
      {0}};
  for (std::size_t panel = 0; panel < num_panels; panel += part) {
    work.filter.first = panel;
    work.filter.end = std::min(panel + part, num_panels);
    run_on(threads, num_threads, run_filter, work);
    run_on(threads, num_threads, run_tiles, work);
  }
}

}  // namespace arenite
