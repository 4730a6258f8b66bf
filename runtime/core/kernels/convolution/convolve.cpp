#include "kernels/convolution/convolve.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "kernels/convolution/packed_tile.hpp"
#include "kernels/convolution/pixel_rows.hpp"
#include "kernels/convolution/tile.hpp"
#include "kernels/convolution/windows.hpp"
#include "kernels/parallel.hpp"

namespace arenite {

namespace {

// Floats of a filter that stay in the second cache while tiles of pixels go by.
constexpr std::size_t kCached = std::size_t{1} << 17;
// Tiles whose unfinished sums stay there too.
constexpr std::size_t kCachedTiles = 8;

// Floats that are copied for a tile.
constexpr std::size_t kCopies = kTilePixels * kTileStride;
// Runs of floats under the window of a pixel that are multiplied together.
constexpr std::size_t kMostRuns = 16;

// What a thread needs for a tile.
struct Scratch {
  alignas(64) float copies[kCopies];
  alignas(64) float packed[kPacksPixels ? packed_pixels_size(kTileDepth) : 1];
  const float* runs[kMostRuns];
  const float* pixels[kPackedPixels];
  float* results[kPackedPixels] = {};
  const float* addends[kPackedPixels] = {};
  const float* kept[kMostRuns];  // rows under the window of the first pixel in a row
  bool has_rows;                 // all of them exist
  std::size_t held[kMostRuns];
  // Sums and addends of panels that reach beyond the last channel.
  float edge[kTileSums];
  float edge_addend[kTileSums];
};

// Where so many pixels that lie `step` apart begin, from index `at` on. All that a tile has take no
// loop.
template <typename T>
void place(T* first, std::size_t step, std::size_t at, std::size_t count, T** places) {
  if (count == kPackedPixels) {
#pragma GCC unroll 6
    for (std::size_t i = 0; i < kPackedPixels; ++i, first += step) { places[i] = first; }
    return;
  }
  for (std::size_t i = at; i < at + count; ++i, first += step) { places[i] = first; }
}

// Panels for which tiles of pixels in one row are worth it, however small.
constexpr std::size_t kFewPanels = 8;

class Run {
 public:
  Run(const Convolution& convolution, const Image<const float>& source, const Image<float>& result,
      RowRange rows, std::size_t num_threads)
      : convolution_(convolution),
        source_(source),
        result_(result),
        rows_(rows),
        kernels_(tile_kernels()),
        channels_(source.channels / convolution.groups),
        outputs_(result.channels / convolution.groups),
        panels_(divide_up(outputs_, kPanel)),
        packs_(kPacksPixels && panels_ > 1),
        window_rows_(convolution.window.kernel[0]),
        depth_(window_rows_ * convolution.window.kernel[1] * channels_),
        windows_(convolution.window, source, channels_, result.columns) {
    choose_tiles();
    choose_blocks();
    choose_parts(num_threads);
  }

  std::size_t num_parts() const { return convolution_.groups * panel_parts_ * pixel_parts_; }

  // Parts that follow one another share panels of the filter.
  void run(std::size_t part) const {
    const std::size_t pixel_part = part % pixel_parts_;
    const std::size_t panel_part = part / pixel_parts_ % panel_parts_;
    const std::size_t group = part / pixel_parts_ / panel_parts_;
    const std::size_t together = most_panels(most_pixels());
    Range panels = split(divide_up(panels_, together), panel_parts_, panel_part);
    panels.first *= together;
    panels.count = std::min(panels.count * together, panels_ - panels.first);
    run(group, panels, split(num_tiles(), pixel_parts_, pixel_part));
  }

 private:
  std::size_t num_tiles() const { return num_lines_ * tiles_of_line_; }
  std::size_t most_pixels() const { return divide_up(line_, tiles_of_line_); }

  std::size_t most_panels(std::size_t pixels) const {
    std::size_t panels = kTilePanels;
    while (kernels_.multiply[panels - 1][pixels - 1] == nullptr) { --panels; }
    return panels;
  }

  // Windows are read in place by tiles of pixels in one row, or copied for tiles of any pixels that
  // lie evenly in the result.
  void choose_tiles() {
    const std::size_t most = panels_ == 1 ? kernels_.pixels_of_panel : kernels_.pixels;
    is_pointwise_ = packs_ && depth_ == channels_ && !convolution_.window.has_padding();
    if (is_pointwise_) {
      num_lines_ = 1;
      line_ = rows_.count * result_.columns;
      tiles_of_line_ = divide_up(line_, most);
      reads_runs_ = false;
      return;
    }
    num_lines_ = rows_.count;
    line_ = result_.columns;
    tiles_of_line_ = divide_up(line_, most);
    // Copies of a row with padding must fit. For many panels they take less time than small tiles.
    const bool has_copies = window_rows_ > 1 || convolution_.window.has_padding();
    reads_runs_ = windows_.has_runs() && (!has_copies || windows_.span(most_pixels()) <= kCopies) &&
                  (panels_ <= kFewPanels || line_ * 6 >= tiles_of_line_ * most * 5) &&
                  (!packs_ || window_rows_ == 1 || are_rows_packed());
    const Image<const float>* addend = convolution_.store.addend;
    if (!reads_runs_ && is_dense(result_) && (addend == nullptr || is_dense(*addend))) {
      num_lines_ = 1;
      line_ *= rows_.count;
      tiles_of_line_ = divide_up(line_, most);
    }
  }

  // Pixels are packed by two steps of the depth.
  bool are_rows_packed() const {
    const std::size_t row = depth_ / window_rows_;
    return row % 2 == 0 && row <= kTileDepth;
  }

  // Of windows of several rows that are read in place, a block of the depth has some of the rows.
  void choose_blocks() {
    has_rows_ = reads_runs_ && window_rows_ > 1;
    block_unit_ = has_rows_ ? depth_ / window_rows_ : 1;
    std::size_t most = kTileDepth;
    if (has_rows_) {
      most = std::min(kCopies / windows_.span(most_pixels()), kMostRuns);
      if (packs_) { most = std::min(most, kTileDepth / block_unit_); }
    }
    num_blocks_ = divide_up(depth_ / block_unit_, most);
    const std::size_t taken = windows_.span(line_) * window_rows_;
    keeps_rows_ = has_rows_ && num_blocks_ == 1 && tiles_of_line_ <= 2 &&
                  convolution_.window.has_padding() && taken <= kCopies;
  }

  void choose_parts(std::size_t num_threads) {
    const std::size_t tiles = num_tiles();
    const std::size_t together = most_panels(most_pixels());
    const std::size_t panels = divide_up(panels_, together);
    const std::size_t cached = kCached / (divide_up(depth_, num_blocks_) * kPanel);
    panel_parts_ = divide_up(panels_, std::max<std::size_t>(cached, together));
    pixel_parts_ = num_blocks_ == 1 ? 1 : divide_up(tiles, kCachedTiles);
    if (num_threads == 1) { return; }
    const std::size_t wanted = divide_up(num_threads * kPartsPerThread, convolution_.groups);
    const auto split_panels = [&] {
      panel_parts_ = std::clamp(divide_up(wanted, pixel_parts_), panel_parts_, panels);
    };
    const auto split_pixels = [&] {
      pixel_parts_ = std::clamp(divide_up(wanted, panel_parts_), pixel_parts_, tiles);
    };
    // Parts of the panels copy the same source, parts of the pixels read the same filter.
    if (rows_.count * result_.columns < outputs_) {
      split_panels();
      split_pixels();
    } else {
      split_pixels();
      split_panels();
    }
  }

  void run(std::size_t group, Range panels, Range tiles) const {
    Scratch scratch;
    Tile tile;
    tile.runs = scratch.runs;
    tile.source_step = reads_runs_ ? windows_.step() : kTileStride;
    tile.panel_stride = depth_ * kPanel;
    tile.result_step = result_.pixel_stride;
    const Image<const float>* addend = convolution_.store.addend;
    tile.addend_step = addend == nullptr ? 0 : addend->pixel_stride;
    tile.min = convolution_.store.min;
    tile.max = convolution_.store.max;
    const std::size_t least = line_ / tiles_of_line_;
    const std::size_t rest = line_ % tiles_of_line_;
    for (std::size_t block = 0; block < num_blocks_; ++block) {
      const Range units = split(depth_ / block_unit_, num_blocks_, block);
      const std::size_t depth = units.first * block_unit_;
      tile.num_runs = has_rows_ ? units.count : 1;
      tile.run_length = has_rows_ ? block_unit_ : units.count;
      tile.is_last = units.first + units.count == depth_ / block_unit_;
      const TilesOfPanel* const of_panel = prepare_panel(group, panels, depth, tile);
      [[maybe_unused]] PackedTile packed = packed_tile(group, panels, depth, tile, scratch);
      std::size_t row = rows_.first + tiles.first / tiles_of_line_;
      std::size_t in_line = tiles.first % tiles_of_line_;
      for (std::size_t i = 0; i < tiles.count; ++i) {
        const Range pixels{in_line * least + std::min(in_line, rest),
                           least + (in_line < rest ? 1 : 0)};
        if constexpr (kPacksPixels) {
          if (is_pointwise_) {
            multiply_pointwise(group, panels, pixels, depth, tile, packed, scratch);
            ++in_line;
            continue;
          }
        }
        if (!reads_runs_) {
          scratch.runs[0] = scratch.copies;
          windows_.copy(row, pixels.first, pixels.count, group * channels_, depth, units.count,
                        scratch.copies);
        } else {
          find_runs(row, pixels, group, has_rows_ ? units.first : 0, tile.num_runs, i == 0,
                    scratch);
          if (!has_rows_) { scratch.runs[0] += depth; }
        }
        if constexpr (kPacksPixels) {
          if (packs_) { multiply_after_packing(group, panels, row, pixels, tile, packed, scratch); }
        }
        if (!packs_) {
          if (of_panel != nullptr) {
            multiply_panel(group, panels, row, pixels, (*of_panel)[pixels.count - 1], tile);
          } else {
            multiply(group, panels, row, pixels, depth, tile, scratch);
          }
        }
        if (++in_line == tiles_of_line_) {
          in_line = 0;
          ++row;
        }
      }
    }
  }

  void find_runs(std::size_t row, Range pixels, std::size_t group, std::size_t first,
                 std::size_t count, bool is_first, Scratch& scratch) const {
    if (!keeps_rows_) {
      // Rows of the source are found once for all tiles of a row of the result.
      if (is_first || pixels.first == 0) {
        scratch.has_rows = windows_.find_rows(row, group * channels_, first, count, scratch.kept);
      }
      if (scratch.has_rows && windows_.is_inside(pixels.first, pixels.count)) {
        const std::ptrdiff_t begin = windows_.begin(pixels.first);
        for (std::size_t i = 0; i < count; ++i) { scratch.runs[i] = scratch.kept[i] + begin; }
        return;
      }
      windows_.find_runs(row, pixels.first, pixels.count, group * channels_, first, count,
                         scratch.copies, scratch.runs);
      return;
    }
    if (is_first) { std::fill_n(scratch.held, count, 0); }
    if (is_first || pixels.first == 0) {
      windows_.find_runs(row, 0, line_, group * channels_, first, count, scratch.copies,
                         scratch.kept, scratch.held);
    }
    for (std::size_t i = 0; i < count; ++i) {
      scratch.runs[i] = scratch.kept[i] + pixels.first * windows_.step();
    }
  }

  // Multiplies pixels that were copied or found by some panels of a group, of which they are packed
  // for all.
  void multiply_after_packing(std::size_t group, Range panels, std::size_t row, Range pixels,
                              const Tile& found, PackedTile& tile, Scratch& scratch) const {
    const FloatStore& store = convolution_.store;
    const std::size_t channel = group * outputs_ + panels.first * kPanel;
    float* packed = scratch.packed;
    // Behind copies is room to go on to a whole vector.
    const std::size_t packed_depth =
        reads_runs_ ? found.run_length : round_up(found.run_length, kPackedSteps);
    for (std::size_t run = 0; run < found.num_runs; ++run) {
      const float* sources[kPackedPixels];
      for (std::size_t i = 0; i < pixels.count; ++i) {
        sources[i] = found.runs[run] + i * found.source_step;
      }
      pack_pixels(sources, pixels.count, packed_depth, packed);
      packed += found.run_length * round_up(pixels.count, 2);
    }
    for (std::size_t i = 0; i < pixels.count; ++i) {
      scratch.results[i] = result_.row(row) + (pixels.first + i) * result_.pixel_stride + channel;
      if (store.addend != nullptr) {
        scratch.addends[i] =
            store.addend->row(row) + (pixels.first + i) * found.addend_step + channel;
      }
    }
    tile.num_pixels = pixels.count;
    multiply_packed(tile);
  }

  // Packs pixels of any rows where they lie, and multiplies them: windows of one pixel.
  void multiply_pointwise(std::size_t group, Range panels, Range pixels, std::size_t depth,
                          const Tile& found, PackedTile& tile, Scratch& scratch) const {
    const FloatStore& store = convolution_.store;
    const SlidingWindow& window = convolution_.window;
    const std::size_t channel = group * outputs_ + panels.first * kPanel;
    std::size_t row = rows_.first + pixels.first / result_.columns;
    std::size_t column = pixels.first % result_.columns;
    const std::size_t source_step = window.strides[1] * source_.pixel_stride;
    for (std::size_t i = 0; i < pixels.count;) {
      const std::size_t count = std::min(pixels.count - i, result_.columns - column);
      const float* from =
          source_.row(row * window.strides[0]) + column * source_step + group * channels_ + depth;
      float* to = result_.row(row) + column * result_.pixel_stride + channel;
      place(from, source_step, i, count, scratch.pixels);
      place(to, result_.pixel_stride, i, count, scratch.results);
      if (store.addend != nullptr) {
        place(store.addend->row(row) + column * found.addend_step + channel, found.addend_step, i,
              count, scratch.addends);
      }
      i += count;
      column = 0;
      ++row;
    }
    pack_pixels(scratch.pixels, pixels.count, found.run_length, scratch.packed);
    tile.num_pixels = pixels.count;
    multiply_packed(tile);
  }

  // What all tiles of packed pixels have in common; of each the number of pixels is missing.
  PackedTile packed_tile(std::size_t group, Range panels, std::size_t depth, const Tile& found,
                         const Scratch& scratch) const {
    const FloatStore& store = convolution_.store;
    const std::size_t first = panels.first * kPanel;
    const std::size_t channel = group * outputs_ + first;
    PackedTile tile{};
    tile.pixels = scratch.packed;
    tile.depth = found.num_runs * found.run_length;
    tile.panel_stride = found.panel_stride;
    tile.filter =
        convolution_.filter + (group * panels_ + panels.first) * tile.panel_stride + depth * kPanel;
    tile.channels = std::min(panels.count * kPanel, outputs_ - first);
    tile.result = scratch.results;
    tile.addend = store.addend == nullptr ? nullptr : scratch.addends;
    tile.bias = store.bias == nullptr ? nullptr : store.bias + channel;
    tile.is_first = depth == 0;
    tile.is_last = found.is_last;
    tile.min = store.min;
    tile.max = store.max;
    return tile;
  }

  using TilesOfPanel = std::array<MultiplyTile, kTilePixels>;

  // Where one panel is made, whole or a half, what all its tiles have in common is known before
  // them: returns null elsewhere.
  const TilesOfPanel* prepare_panel(std::size_t group, Range panels, std::size_t depth,
                                    Tile& tile) const {
    static constexpr float kNoBias[kPanel] = {};
    const std::size_t channel = panels.first * kPanel;
    const std::size_t width = outputs_ - channel;
    const bool is_half = width == kPanel / 2 && kernels_.multiply_to_half[0][0] != nullptr;
    if (packs_ || panels.count != 1 || (width < kPanel && !is_half)) { return nullptr; }
    const FloatStore& store = convolution_.store;
    tile.filter =
        convolution_.filter + (group * panels_ + panels.first) * tile.panel_stride + depth * kPanel;
    tile.bias = nullptr;
    tile.addend = nullptr;
    if (depth == 0) {
      tile.bias = store.bias == nullptr ? kNoBias : store.bias + group * outputs_ + channel;
    }
    return &(is_half ? kernels_.multiply_to_half : kernels_.multiply)[0];
  }

  void multiply_panel(std::size_t group, Range panels, std::size_t row, Range pixels,
                      MultiplyTile multiply, Tile& tile) const {
    const std::size_t channel = group * outputs_ + panels.first * kPanel;
    tile.result = result_.row(row) + pixels.first * result_.pixel_stride + channel;
    if (convolution_.store.addend != nullptr) {
      tile.addend = convolution_.store.addend->row(row) + pixels.first * tile.addend_step + channel;
    }
    multiply(tile);
  }

  // Multiplies pixels that were copied or found by some panels of a group.
  void multiply(std::size_t group, Range panels, std::size_t row, Range pixels, std::size_t depth,
                Tile& tile, Scratch& scratch) const {
    const FloatStore& store = convolution_.store;
    static constexpr float kNoBias[kPanel * kTilePanels] = {};
    float* const result = result_.row(row) + pixels.first * result_.pixel_stride + group * outputs_;
    const float* addend = nullptr;
    if (store.addend != nullptr) {
      addend = store.addend->row(row) + pixels.first * tile.addend_step + group * outputs_;
    }
    const std::size_t most = most_panels(pixels.count);
    for (std::size_t done = 0; done < panels.count;) {
      std::size_t count = std::min(panels.count - done, most);
      if (panels.count - done == most + 1) {
        count = divide_up(most + 1, 2);  // one alone would be slow
      }
      const std::size_t panel = panels.first + done;
      const std::size_t channel = panel * kPanel;
      tile.filter =
          convolution_.filter + (group * panels_ + panel) * tile.panel_stride + depth * kPanel;
      tile.result = result + channel;
      tile.addend = addend == nullptr ? nullptr : addend + channel;
      tile.bias = nullptr;
      if (depth == 0) {
        tile.bias = store.bias == nullptr ? kNoBias : store.bias + group * outputs_ + channel;
      }
      MultiplyTile multiply = kernels_.multiply[count - 1][pixels.count - 1];
      std::size_t made = count * kPanel;
      const MultiplyTile to_half = kernels_.multiply_to_half[count - 1][pixels.count - 1];
      if (to_half != nullptr && channel + made - kPanel / 2 >= outputs_) {
        multiply = to_half;
        made -= kPanel / 2;
      }
      if (channel + made <= outputs_) {
        multiply(tile);
      } else {
        multiply_edge(multiply, tile, pixels.count, outputs_ - channel, count * kPanel, scratch);
      }
      done += count;
    }
  }

  // Where panels reach beyond the last channel, sums are made elsewhere.
  void multiply_edge(MultiplyTile multiply, Tile tile, std::size_t pixels, std::size_t width,
                     std::size_t panel_width, Scratch& scratch) const {
    float bias[kTilePanels * kPanel] = {};
    const Tile given = tile;
    for (std::size_t i = 0; i < pixels; ++i) {
      float* const sum = scratch.edge + i * panel_width;
      float* const addend = scratch.edge_addend + i * panel_width;
      if (given.bias == nullptr) {
        std::copy_n(given.result + i * given.result_step, width, sum);
        std::fill_n(sum + width, panel_width - width, 0.0f);
      } else if (given.addend != nullptr) {
        std::copy_n(given.addend + i * given.addend_step, width, addend);
        std::fill_n(addend + width, panel_width - width, 0.0f);
      }
    }
    if (given.bias != nullptr) {
      std::copy_n(given.bias, width, bias);
      tile.bias = bias;
    }
    tile.result = scratch.edge;
    tile.addend = given.addend == nullptr ? nullptr : scratch.edge_addend;
    tile.result_step = tile.addend_step = panel_width;
    multiply(tile);
    for (std::size_t i = 0; i < pixels; ++i) {
      std::copy_n(scratch.edge + i * panel_width, width, given.result + i * given.result_step);
    }
  }

  const Convolution& convolution_;
  const Image<const float>& source_;
  const Image<float>& result_;
  const RowRange rows_;
  const TileKernels& kernels_;
  const std::size_t channels_;  // of a group
  const std::size_t outputs_;   // of a group
  const std::size_t panels_;    // of a group
  const bool packs_;            // pixels: for one panel it takes longer than it saves
  const std::size_t window_rows_;
  const std::size_t depth_;
  const Windows windows_;
  bool is_pointwise_;  // windows of one pixel, which are packed where they lie
  bool reads_runs_;
  bool has_rows_;          // of windows, as runs
  bool keeps_rows_;        // copies of rows of the source with their padding
  std::size_t num_lines_;  // of pixels that tiles divide
  std::size_t line_;
  std::size_t tiles_of_line_;
  std::size_t block_unit_;  // of the depth
  std::size_t num_blocks_;
  std::size_t panel_parts_;
  std::size_t pixel_parts_;
};

void compute(const Convolution& convolution, const Image<const float>& source,
             const Image<float>& result, RowRange rows, pthreadpool_t threads) {
  const auto& kernel = convolution.window.kernel;
  const std::size_t depth = kernel[0] * kernel[1] * (source.channels / convolution.groups);
  const std::size_t products = rows.count * result.columns * result.channels * depth;
  const std::size_t num_threads = threads_worthwhile(products, threads);
  run_parts(Run(convolution, source, result, rows, num_threads), num_threads, threads);
}

}  // namespace

std::size_t packed_filter_size(std::size_t groups, std::size_t outputs, std::size_t depth) {
  return groups * divide_up(outputs / groups, kPanel) * kPanel * depth;
}

void convolve(const Convolution& convolution, const Image<const float>& source,
              const Image<float>& result, RowRange rows, pthreadpool_t threads) {
  over_pixels(convolution, source, result, rows,
              [threads](const auto& each, const auto& from, const auto& to, RowRange some) {
                compute(each, from, to, some, threads);
              });
}

}  // namespace arenite
