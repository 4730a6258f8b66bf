#include "kernels/convolution/convolve.hpp"

#include <algorithm>

#include "kernels/convolution/packed_tile.hpp"
#include "kernels/convolution/tile.hpp"
#include "kernels/convolution/windows.hpp"
#include "kernels/parallel.hpp"

namespace arenite {

namespace {

// Floats of a filter that stay in the second cache while tiles of pixels go by.
constexpr std::size_t kCached = std::size_t{1} << 17;
// Tiles whose unfinished sums stay there too.
constexpr std::size_t kCachedTiles = 8;
// Products that are not worth waking another thread for.
constexpr std::size_t kWorthwhile = std::size_t{1} << 18;
// Parts for each thread: one that is held up leaves some to the others.
constexpr std::size_t kPartsPerThread = 4;

// Panels that are too few for a copy of the source to be worth its time.
constexpr std::size_t kFewPanels = 8;
// Pixels that are enough to read panels for where they are copied again for each part of these.
constexpr std::size_t kManyPixels = 128;

// What a thread needs for a tile.
struct Scratch {
  alignas(64) float copies[kTilePixels * kTileStride];
  const float* source[kTilePixels];
  alignas(64) float packed[kPacksPixels ? packed_pixels_size(kTileDepth) : 1];
  // Sums and addends of panels that reach beyond the last channel.
  float edge[kTileSums];
  float edge_addend[kTileSums];
};

// `part` of `count` things that are split as evenly as can be.
struct Range {
  std::size_t first;
  std::size_t count;
};

Range split(std::size_t count, std::size_t parts, std::size_t part) {
  const std::size_t first = count * part / parts;
  return {first, count * (part + 1) / parts - first};
}

class Run {
 public:
  Run(const Convolution& convolution, const Image<const float>& source, const Image<float>& result,
      RowRange rows, std::size_t num_threads)
      : convolution_(convolution),
        result_(result),
        rows_(rows),
        kernels_(tile_kernels()),
        channels_(source.channels / convolution.groups),
        outputs_(result.channels / convolution.groups),
        panels_(divide_up(outputs_, kPanel)),
        depth_(convolution.window.kernel[0] * convolution.window.kernel[1] * channels_),
        windows_(convolution.window, source, channels_, rows.first, result.columns),
        is_in_place_((kPacksPixels || panels_ <= kFewPanels || would_copy_again()) &&
                     windows_.are_rows_readable()),
        window_rows_(convolution.window.kernel[0]),
        row_kernels_(find_row_kernels()),
        depth_rows_(is_in_place_ ? convolution.window.kernel[0] : 1),
        most_pixels_(is_in_place_ && panels_ == 1 ? kernels_.pixels_in_place : kernels_.pixels) {
    choose_parts(num_threads);
  }

  std::size_t num_parts() const { return convolution_.groups * panel_parts_ * pixel_parts_; }

  // Parts that follow one another share panels of the filter.
  void run(std::size_t part) const {
    const std::size_t pixel_part = part % pixel_parts_;
    const std::size_t panel_part = part / pixel_parts_ % panel_parts_;
    const std::size_t group = part / pixel_parts_ / panel_parts_;
    const std::size_t together = panels_together();
    Range panels = split(divide_up(panels_, together), panel_parts_, panel_part);
    panels.first *= together;
    panels.count = std::min(panels.count * together, panels_ - panels.first);
    run(group, panels, split(num_pixels(), pixel_parts_, pixel_part));
  }

 private:
  std::size_t num_pixels() const { return rows_.count * result_.columns; }

  // Whether tiles would be copied for each part of the panels, and are worth the pointers to them.
  bool would_copy_again() const {
    const auto& kernel = convolution_.window.kernel;
    return kernel[0] * kernel[1] == 1 && depth_ * panels_ * kPanel > kCached &&
           num_pixels() >= kManyPixels;
  }

  // Kernels that read windows row by row where they lie, null if there are none. What ends in half
  // a panel has better ones.
  const TileMultiplies* find_row_kernels() const {
    const std::size_t step = windows_.row_step_index();
    const std::size_t rest = outputs_ % kPanel;
    const bool fits =
        convolution_.groups == 1 && depth_ <= kTileDepth && window_rows_ <= kTilePixels;
    const bool ends_in_half = rest > 0 && rest <= kPanel / 2;
    return step < kTileSteps.size() && fits && !is_in_place_ && !ends_in_half
               ? &kernels_.multiply_rows[step]
               : nullptr;
  }

  // Panels are shared out as many together as are multiplied together.
  std::size_t panels_together() const { return most_panels(std::min(num_pixels(), most_pixels_)); }

  std::size_t most_panels(std::size_t pixels) const {
    std::size_t panels = kTilePanels;
    while (kernels_.multiply[panels - 1][pixels - 1] == nullptr) { --panels; }
    return panels;
  }

  void choose_parts(std::size_t num_threads) {
    const std::size_t tiles = divide_up(num_pixels(), most_pixels_);
    const std::size_t panels = divide_up(panels_, panels_together());
    const std::size_t cached = kCached / (std::min(depth_, kTileDepth) * kPanel);
    panel_parts_ = divide_up(panels_, std::max<std::size_t>(cached, panels_together()));
    pixel_parts_ = divide_up(tiles, kCachedTiles);
    if (num_threads == 1) { return; }
    const std::size_t wanted = divide_up(num_threads * kPartsPerThread, convolution_.groups);
    const auto split_panels = [&] {
      panel_parts_ = std::clamp(divide_up(wanted, pixel_parts_), panel_parts_, panels);
    };
    const auto split_pixels = [&] {
      pixel_parts_ = std::clamp(divide_up(wanted, panel_parts_), pixel_parts_, tiles);
    };
    // Parts of the panels copy the same source, parts of the pixels read the same filter.
    if (num_pixels() < outputs_) {
      split_panels();
      split_pixels();
    } else {
      split_pixels();
      split_panels();
    }
  }

  void run(std::size_t group, Range panels, Range pixels) const {
    Scratch scratch;
    const std::size_t tiles = divide_up(pixels.count, most_pixels_);
    const std::size_t row_depth = depth_ / depth_rows_;
    const std::size_t blocks = divide_up(row_depth, kTileDepth);
    for (std::size_t block = 0; block < depth_rows_ * blocks; ++block) {
      Range depth = split(row_depth, blocks, block % blocks);
      depth.first += block / blocks * row_depth;
      for (std::size_t tile = 0; tile < tiles; ++tile) {
        Range part = split(pixels.count, tiles, tile);
        part.first += pixels.first;
        if (reads_rows(part, panels, scratch)) {
          multiply(group, panels, part, depth, scratch, true);
          continue;
        }
        if (is_in_place_) {
          windows_.find(part.first, part.count, group * channels_, depth.first, depth.count,
                        scratch.copies, scratch.source);
        } else {
          windows_.copy(part.first, part.count, group * channels_, depth.first, depth.count,
                        scratch.copies);
        }
        if constexpr (kPacksPixels) {
          multiply_after_packing(group, panels, part, depth, scratch);
        } else {
          multiply(group, panels, part, depth, scratch, false);
        }
      }
    }
  }

  // Whether the windows of these pixels are read row by row, and finds the rows.
  bool reads_rows(Range pixels, Range panels, Scratch& scratch) const {
    if (row_kernels_ == nullptr || (*row_kernels_)[0][pixels.count - 1] == nullptr) {
      return false;
    }
    const std::size_t together = std::min(most_panels(pixels.count), panels.count);
    return (*row_kernels_)[together - 1][pixels.count - 1] != nullptr &&
           windows_.find_rows(pixels.first, pixels.count, scratch.source);
  }

  // Multiplies pixels that were copied or found by some panels of a group, of which they are packed
  // for all.
  void multiply_after_packing(std::size_t group, Range panels, Range pixels, Range depth,
                              Scratch& scratch) const {
    if (!is_in_place_) {
      for (std::size_t i = 0; i < pixels.count; ++i) {
        scratch.source[i] = scratch.copies + i * kTileStride;
      }
    }
    pack_pixels(scratch.source, pixels.count, depth.count, scratch.packed);
    const FloatStore& store = convolution_.store;
    const std::size_t first = panels.first * kPanel;
    const std::size_t channel = group * outputs_ + first;
    float* results[kPackedPixels] = {};
    const float* addends[kPackedPixels] = {};
    point_at(result_, pixels, channel, results);
    if (store.addend != nullptr) { point_at(*store.addend, pixels, channel, addends); }
    PackedTile tile{};
    tile.pixels = scratch.packed;
    tile.num_pixels = pixels.count;
    tile.depth = depth.count;
    tile.panel_stride = depth_ * kPanel;
    tile.filter = convolution_.filter + (group * panels_ + panels.first) * tile.panel_stride +
                  depth.first * kPanel;
    tile.channels = std::min(panels.count * kPanel, outputs_ - first);
    tile.result = results;
    tile.addend = store.addend == nullptr ? nullptr : addends;
    tile.bias = store.bias == nullptr ? nullptr : store.bias + channel;
    tile.is_first = depth.first == 0;
    tile.is_last = depth.first + depth.count == depth_;
    tile.min = store.min;
    tile.max = store.max;
    multiply_packed(tile);
  }

  // Multiplies pixels that were copied or found by some panels of a group.
  void multiply(std::size_t group, Range panels, Range pixels, Range depth, Scratch& scratch,
                bool by_rows) const {
    const FloatStore& store = convolution_.store;
    float* results[kTilePixels];
    const float* addends[kTilePixels];
    point_at(result_, pixels, group * outputs_, results);
    if (store.addend != nullptr) { point_at(*store.addend, pixels, group * outputs_, addends); }
    static constexpr float kNoBias[kPanel * kTilePanels] = {};
    const std::size_t panel_stride = depth_ * kPanel;
    const bool is_first = depth.first == 0;
    Tile tile;
    tile.copies = scratch.copies;
    tile.source = is_in_place_ ? scratch.source : nullptr;
    tile.rows = scratch.source;
    tile.num_rows = window_rows_;
    tile.panel_stride = panel_stride;
    tile.depth = by_rows ? depth.count / window_rows_ : depth.count;
    tile.result = results;
    tile.next = pixels.count * result_.pixel_stride;
    tile.addend = store.addend == nullptr ? nullptr : addends;
    tile.bias = nullptr;
    tile.is_last = depth.first + depth.count == depth_;
    tile.min = store.min;
    tile.max = store.max;
    const std::size_t most = most_panels(pixels.count);
    for (std::size_t done = 0; done < panels.count;) {
      std::size_t count = std::min(panels.count - done, most);
      if (panels.count - done == most + 1) {
        count = divide_up(most + 1, 2);  // one alone would be slow
      }
      const std::size_t panel = panels.first + done;
      tile.filter =
          convolution_.filter + (group * panels_ + panel) * panel_stride + depth.first * kPanel;
      tile.channel = panel * kPanel;
      if (is_first) {
        tile.bias = store.bias == nullptr ? kNoBias : store.bias + group * outputs_ + tile.channel;
      }
      const TileMultiplies& kernels = by_rows ? *row_kernels_ : kernels_.multiply;
      MultiplyTile multiply = kernels[count - 1][pixels.count - 1];
      std::size_t made = count * kPanel;
      const MultiplyTile to_half = kernels_.multiply_to_half[count - 1][pixels.count - 1];
      if (!by_rows && to_half != nullptr && tile.channel + made - kPanel / 2 >= outputs_) {
        multiply = to_half;
        made -= kPanel / 2;
      }
      if (tile.channel + made <= outputs_) {
        multiply(tile);
      } else {
        multiply_edge(multiply, tile, pixels.count, count * kPanel, scratch);
      }
      done += count;
    }
  }

  // Where panels reach beyond the last channel, sums are made elsewhere.
  void multiply_edge(MultiplyTile multiply, Tile tile, std::size_t pixels, std::size_t panel_width,
                     Scratch& scratch) const {
    const std::size_t width = outputs_ - tile.channel;
    float bias[kTilePanels * kPanel] = {};
    float* sums[kTilePixels];
    const float* addends[kTilePixels];
    const Tile given = tile;
    for (std::size_t i = 0; i < pixels; ++i) {
      float* const sum = scratch.edge + i * panel_width;
      float* const addend = scratch.edge_addend + i * panel_width;
      if (given.bias == nullptr) {
        std::copy_n(given.result[i] + given.channel, width, sum);
        std::fill_n(sum + width, panel_width - width, 0.0f);
      } else if (given.addend != nullptr) {
        std::copy_n(given.addend[i] + given.channel, width, addend);
        std::fill_n(addend + width, panel_width - width, 0.0f);
      }
      sums[i] = sum;
      addends[i] = addend;
    }
    if (given.bias != nullptr) {
      std::copy_n(given.bias, width, bias);
      tile.bias = bias;
    }
    tile.result = sums;
    tile.addend = given.addend == nullptr ? nullptr : addends;
    tile.channel = 0;
    multiply(tile);
    for (std::size_t i = 0; i < pixels; ++i) {
      std::copy_n(sums[i], width, given.result[i] + given.channel);
    }
  }

  template <typename T>
  void point_at(const Image<T>& image, Range pixels, std::size_t channel, T** pointers) const {
    std::size_t row = rows_.first + pixels.first / image.columns;
    std::size_t column = pixels.first % image.columns;
    for (std::size_t i = 0; i < pixels.count; ++row) {
      T* pixel = image.row(row) + column * image.pixel_stride + channel;
      for (; i < pixels.count && column < image.columns; ++i, ++column) {
        pointers[i] = pixel;
        pixel += image.pixel_stride;
      }
      column = 0;
    }
  }

  const Convolution& convolution_;
  const Image<float>& result_;
  const RowRange rows_;
  const TileKernels& kernels_;
  const std::size_t channels_;  // of a group
  const std::size_t outputs_;   // of a group
  const std::size_t panels_;    // of a group
  const std::size_t depth_;
  const Windows windows_;
  const bool is_in_place_;
  const std::size_t window_rows_;
  const TileMultiplies* const row_kernels_;
  const std::size_t depth_rows_;   // parts of the depth that lie apart
  const std::size_t most_pixels_;  // of a tile
  std::size_t panel_parts_;
  std::size_t pixel_parts_;
};

}  // namespace

std::size_t packed_filter_size(std::size_t groups, std::size_t outputs, std::size_t depth) {
  return groups * divide_up(outputs / groups, kPanel) * kPanel * depth;
}

void convolve(const Convolution& convolution, const Image<const float>& source,
              const Image<float>& result, RowRange rows, pthreadpool_t threads) {
  const std::size_t pixels = rows.count * result.columns;
  if (pixels == 0) { return; }
  const auto& kernel = convolution.window.kernel;
  const std::size_t depth = kernel[0] * kernel[1] * (source.channels / convolution.groups);
  const bool is_worthwhile = pixels * result.channels * depth >= kWorthwhile;
  const std::size_t num_threads = is_worthwhile ? pthreadpool_get_threads_count(threads) : 1;
  const Run run(convolution, source, result, rows, num_threads);
  if (num_threads == 1) {
    for (std::size_t part = 0; part < run.num_parts(); ++part) { run.run(part); }
    return;
  }
  pthreadpool_parallelize_1d(
      threads, [](void* context, std::size_t part) { static_cast<const Run*>(context)->run(part); },
      const_cast<Run*>(&run), run.num_parts(), 0);
}

}  // namespace arenite
