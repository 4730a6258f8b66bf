#include "kernels/highway_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/convolution/winograd.cpp"
#include "hwy/foreach_target.h"
// After them: compiled for each kind of processor.
#include "kernels/convolution/winograd_job.hpp"
#include "kernels/convolution/winograd_points.hpp"

HWY_BEFORE_NAMESPACE();
namespace arenite {
namespace HWY_NAMESPACE {
namespace {

ARENITE_LANE Lanes load_first(const float* from, std::size_t count) {
  return count < kLanes ? load_some(from, count) : load(from);
}

ARENITE_LANE void store_first(Lanes value, float* to, std::size_t count) {
  if (count < kLanes) {
    store_some(value, to, count);
  } else {
    store(value, to);
  }
}

// Points are kept as the products read them: by chunks of kPanel channels, in a chunk by tiles.
template <std::size_t Tile>
struct Tiles {
  static constexpr std::size_t kSide = Tile + 2;

  const WinogradJob& job;
  std::size_t first;
  std::size_t count;
  float* points;
  float* products;

  // Takes a tile of the source apart; at an edge only `rows` and `columns` of it exist.
  template <bool AtEdge>
  ARENITE_LANE void enter(const float* const (&source)[kSide], RowRange columns,
                          std::size_t channel, std::size_t num_channels, float* to) const {
    const std::size_t stride = job.source.pixel_stride;
    Lanes down[kSide][kSide];
#pragma GCC unroll 8
    for (std::size_t x = 0; x < kSide; ++x) {
      Lanes in[kSide];
#pragma GCC unroll 8
      for (std::size_t y = 0; y < kSide; ++y) {
        if (AtEdge && (source[y] == nullptr || x - columns.first >= columns.count)) {
          in[y] = all_lanes(0.0f);
        } else {
          const float* pixel = source[y] + (AtEdge ? x - columns.first : x) * stride + channel;
          in[y] = load_first(pixel, num_channels);
        }
      }
      Lanes out[kSide];
      WinogradPoints<Tile>::enter(in, out);
#pragma GCC unroll 8
      for (std::size_t y = 0; y < kSide; ++y) {
        down[y][x] = out[y];
      }
    }
#pragma GCC unroll 8
    for (std::size_t y = 0; y < kSide; ++y) {
      Lanes out[kSide];
      WinogradPoints<Tile>::enter(down[y], out);
#pragma GCC unroll 8
      for (std::size_t x = 0; x < kSide; ++x) {
        store(out[x], to + (y * kSide + x) * job.point_stride);
      }
    }
  }

  // The rows and columns of a tile of the source that exist.
  HWY_NOINLINE void enter_tile(std::size_t index) const {
    const std::size_t top = (first + index) / job.tile_columns * Tile;
    const std::size_t left = (first + index) % job.tile_columns * Tile;
    const Image<const float>& image = job.source;
    const std::size_t margin = job.convolution.padding[3];
    const std::size_t skipped = left < margin ? margin - left : 0;
    const std::size_t column = left < margin ? 0 : left - margin;
    const std::size_t there = column < image.columns ? image.columns - column : 0;
    RowRange columns{skipped < kSide ? skipped : kSide, 0};
    columns.count = there < kSide - columns.first ? there : kSide - columns.first;
    bool at_edge = columns.count < kSide;
    const float* source[kSide];
    for (std::size_t y = 0; y < kSide; ++y) {
      const std::size_t row = top + y - job.convolution.padding[0];  // above the first: very large
      at_edge = at_edge || row >= image.rows;
      source[y] = row < image.rows ? image.row(row) + column * image.pixel_stride : nullptr;
    }
    for (std::size_t channel = 0; channel < image.channels; channel += kLanes) {
      float* to = points + channel / kPanel * job.chunk_stride + index * kPanel + channel % kPanel;
      const std::size_t rest = image.channels - channel;
      if (at_edge) {
        enter<true>(source, columns, channel, rest, to);
      } else {
        enter<false>(source, columns, channel, rest, to);
      }
    }
  }

  // Puts tiles of the result together in a vector of channels; `column` counts in the products.
  HWY_NOINLINE void leave_tiles(std::size_t channel, std::size_t column) const {
    const FloatStore& kept = job.convolution.store;
    const std::size_t num_channels = job.result.channels - channel;
    const Lanes bias =
        kept.bias == nullptr ? all_lanes(0.0f) : load_first(kept.bias + channel, num_channels);
    const Lanes min = all_lanes(kept.min);
    const Lanes max = all_lanes(kept.max);
    for (std::size_t index = 0; index < count; ++index) {
      const float* from = products + index * kProductColumns + column;
      Lanes down[Tile][kSide];
#pragma GCC unroll 8
      for (std::size_t x = 0; x < kSide; ++x) {
        Lanes in[kSide];
#pragma GCC unroll 8
        for (std::size_t y = 0; y < kSide; ++y) {
          in[y] = load(from + (y * kSide + x) * job.product_stride);
        }
        Lanes out[Tile];
        WinogradPoints<Tile>::leave(in, out);
#pragma GCC unroll 8
        for (std::size_t y = 0; y < Tile; ++y) {
          down[y][x] = out[y];
        }
      }
      const std::size_t top = (first + index) / job.tile_columns * Tile;
      const std::size_t left = (first + index) % job.tile_columns * Tile;
#pragma GCC unroll 8
      for (std::size_t y = 0; y < Tile; ++y) {
        if (top + y - job.rows.first >= job.rows.count) {
          continue;
        }
        Lanes out[Tile];
        WinogradPoints<Tile>::leave(down[y], out);
        float* to = job.result.row(top + y) + left * job.result.pixel_stride + channel;
        const float* addend = nullptr;
        if (kept.addend != nullptr) {
          addend = kept.addend->row(top + y) + left * kept.addend->pixel_stride + channel;
        }
#pragma GCC unroll 8
        for (std::size_t x = 0; x < Tile; ++x) {
          if (left + x >= job.result.columns) {
            break;
          }
          Lanes sum = add(out[x], bias);
          if (addend != nullptr) {
            sum = add(sum, load_first(addend + x * kept.addend->pixel_stride, num_channels));
          }
          store_first(clamp(sum, min, max), to + x * job.result.pixel_stride, num_channels);
        }
      }
    }
  }

  // Multiplies some tiles' channels at a point with vectors of the panels' columns.
  template <std::size_t Rows, std::size_t Vectors>
  HWY_NOINLINE void multiply_rows(const float* from, const float* filter, std::size_t vector_stride,
                                  float* to) const {
    Lanes sums[Rows][Vectors];
#pragma GCC unroll 16
    for (std::size_t r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
      for (std::size_t v = 0; v < Vectors; ++v) {
        sums[r][v] = all_lanes(0.0f);
      }
    }
    for (std::size_t channel = 0; channel < job.source.channels; channel += kPanel) {
      const std::size_t rest = job.source.channels - channel;
      const std::size_t depth = rest < kPanel ? rest : kPanel;
      for (std::size_t k = 0; k < depth; ++k) {
        Lanes factors[Vectors];
#pragma GCC unroll 4
        for (std::size_t v = 0; v < Vectors; ++v) {
          factors[v] = load(filter + v * vector_stride);
        }
        filter += kPanel;
#pragma GCC unroll 16
        for (std::size_t r = 0; r < Rows; ++r) {
          const Lanes value = all_lanes(from[r * kPanel + k]);
#pragma GCC unroll 4
          for (std::size_t v = 0; v < Vectors; ++v) {
            sums[r][v] = multiply_add(value, factors[v], sums[r][v]);
          }
        }
      }
      from += job.chunk_stride;
    }
#pragma GCC unroll 16
    for (std::size_t r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
      for (std::size_t v = 0; v < Vectors; ++v) {
        store(sums[r][v], to + r * kProductColumns + v * kLanes);
      }
    }
  }

  // All tiles, as many at once as registers hold; there is room for one more, so they come in
  // pairs.
  template <std::size_t Vectors>
  ARENITE_LANE void multiply_tiles(const float* from, const float* filter,
                                   std::size_t vector_stride, float* to) const {
    constexpr std::size_t kMost = kLanes == 16 ? 14 : 6;
    const std::size_t blocks = (count + kMost - 1) / kMost;
    std::size_t tile = 0;
    for (std::size_t block = 0; block < blocks; ++block) {
      const std::size_t num_blocks = blocks - block;
      const std::size_t pairs = (count - tile + 2 * num_blocks - 1) / (2 * num_blocks);
      const float* source = from + tile * kPanel;
      float* product = to + tile * kProductColumns;
      switch (pairs) {
        case 1:
          multiply_rows<2, Vectors>(source, filter, vector_stride, product);
          break;
        case 2:
          multiply_rows<4, Vectors>(source, filter, vector_stride, product);
          break;
        case 3:
          multiply_rows<6, Vectors>(source, filter, vector_stride, product);
          break;
        case 4:
          multiply_rows < kMost<8 ? 6 : 8, Vectors>(source, filter, vector_stride, product);
          break;
        case 5:
          multiply_rows < kMost<8 ? 6 : 10, Vectors>(source, filter, vector_stride, product);
          break;
        case 6:
          multiply_rows < kMost<8 ? 6 : 12, Vectors>(source, filter, vector_stride, product);
          break;
        default:
          multiply_rows<kMost, Vectors>(source, filter, vector_stride, product);
      }
      tile += 2 * pairs;
    }
  }

  // The result in panels of channels, two at a time.
  void make(std::size_t first_panel, std::size_t end_panel) const {
    constexpr std::size_t kNumPoints = kSide * kSide;
    // Vectors that are multiplied at once: two of different panels, or of one.
    constexpr std::size_t kVectors = kLanes == 4 && HWY_TARGET != HWY_NEON ? 2
                                     : kLanes == 4                         ? 4
                                                                           : 2;
    constexpr bool kTwoPanels = kVectors * kLanes > kPanel;
    for (std::size_t index = 0; index < count; ++index) {
      enter_tile(index);
    }
    const std::size_t depth = job.source.channels * kPanel;
    for (std::size_t panel = first_panel; panel < end_panel; panel += 2) {
      const std::size_t num_panels = end_panel - panel < 2 ? 1 : 2;
      for (std::size_t point = 0; point < kNumPoints; ++point) {
        const float* from = points + point * job.point_stride;
        float* to = products + point * job.product_stride;
        const float* filter = job.convolution.filter + (panel * kNumPoints + point) * depth;
        if (kTwoPanels && num_panels == 2) {
          multiply_tiles<kVectors>(from, filter, kNumPoints * depth, to);
          continue;
        }
        for (std::size_t p = 0; p < num_panels; ++p) {
          constexpr std::size_t kOfOne = kTwoPanels ? 1 : kVectors;
          for (std::size_t column = 0; column < kPanel; column += kOfOne * kLanes) {
            multiply_tiles<kOfOne>(from, filter + p * kNumPoints * depth + column, kLanes,
                                   to + p * kPanel + column);
          }
        }
      }
      for (std::size_t column = 0; column < num_panels * kPanel; column += kLanes) {
        if (panel * kPanel + column < job.result.channels) {
          leave_tiles(panel * kPanel + column, column);
        }
      }
    }
  }
};

void make_tiles(const WinogradJob& job, std::size_t first, std::size_t count,
                std::size_t first_panel, std::size_t end_panel, float* scratch) {
  const std::size_t points = (job.convolution.tile + 2) * (job.convolution.tile + 2);
  float* products = scratch + points * job.point_stride;
  if (job.convolution.tile == 2) {
    Tiles<2>{job, first, count, scratch, products}.make(first_panel, end_panel);
  } else {
    Tiles<4>{job, first, count, scratch, products}.make(first_panel, end_panel);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace arenite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <atomic>

namespace arenite {

namespace {

std::size_t round_up(std::size_t value, std::size_t step) {
  return (value + step - 1) / step * step;
}

// Tiles that are made together: their points stay in the second cache, and the filter is read once
// for all of them.
std::size_t most_tiles(std::size_t inputs) { return inputs < 256 ? 28 : 56; }

// Points lie apart by an odd number of lines of the cache, which spreads them over its sets.
std::size_t point_stride(std::size_t tiles, std::size_t inputs) {
  return round_up(inputs, kPanel) * tiles + kPanel;
}

std::size_t product_stride(std::size_t tiles) { return tiles * kProductColumns + kPanel; }

std::size_t floats_of_thread(std::size_t tile, std::size_t inputs) {
  const std::size_t tiles = most_tiles(inputs);
  return (tile + 2) * (tile + 2) * (point_stride(tiles, inputs) + product_stride(tiles));
}

}  // namespace

std::size_t winograd_scratch(std::size_t tile, std::size_t inputs, std::size_t num_threads) {
  return floats_of_thread(tile, inputs) * num_threads * sizeof(float);
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
  const std::size_t tile = convolution.tile;
  const std::size_t tile_columns = (result.columns + tile - 1) / tile;
  const std::size_t first = rows.first / tile * tile_columns;
  const std::size_t end = (rows.first + rows.count + tile - 1) / tile * tile_columns;
  const std::size_t panels = (result.channels + kPanel - 1) / kPanel;
  const std::size_t num_threads = pthreadpool_get_threads_count(threads);

  // Blocks of about the same size; where they are too few for the threads, parts of the channels.
  const std::size_t blocks =
      (end - first + most_tiles(source.channels) - 1) / most_tiles(source.channels);
  const std::size_t block = round_up((end - first + blocks - 1) / blocks, 2);
  const std::size_t wanted =
      num_threads == 1 || blocks >= 4 * num_threads ? 1 : (2 * num_threads + blocks - 1) / blocks;
  const std::size_t part = round_up((panels + wanted - 1) / wanted, 2);
  const std::size_t parts = (panels + part - 1) / part;

  struct Work {
    WinogradJob job;
    std::size_t first, end, block, panels, part, parts, num_items;
    float* scratch;
    std::size_t floats_of_thread;
    std::atomic<std::size_t> next;
    decltype(HWY_NAMESPACE::make_tiles)* make_tiles;
  };
  const std::size_t tiles = most_tiles(source.channels);
  Work work{{convolution, source, result, rows, tile_columns, point_stride(tiles, source.channels),
             tiles * kPanel, product_stride(tiles)},
            first,
            end,
            block,
            panels,
            part,
            parts,
            blocks * parts,
            static_cast<float*>(scratch),
            floats_of_thread(tile, source.channels),
            {0},
            ARENITE_COPY(make_tiles)};
  // Each thread has scratch of its own and takes the next item when it is done.
  const auto run = [](void* context, std::size_t thread) {
    Work& work = *static_cast<Work*>(context);
    for (;;) {
      const std::size_t item = work.next.fetch_add(1, std::memory_order_relaxed);
      if (item >= work.num_items) {
        return;
      }
      const std::size_t from = work.first + item / work.parts * work.block;
      const std::size_t panel = item % work.parts * work.part;
      if (from < work.end) {
        work.make_tiles(work.job, from, std::min(work.block, work.end - from), panel,
                        std::min(panel + work.part, work.panels),
                        work.scratch + thread * work.floats_of_thread);
      }
    }
  };
  if (threads == nullptr) {
    run(&work, 0);
  } else {
    pthreadpool_parallelize_1d(threads, run, &work, num_threads, 0);
  }
}

}  // namespace arenite
#endif
