#include "kernels/highway_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/convolution/winograd_tiles.cpp"
#include "hwy/foreach_target.h"
// After them: compiled for each kind of processor.
#include "kernels/convolution/winograd_job.hpp"
#include "kernels/convolution/winograd_points.hpp"
#include "kernels/convolution/winograd_products.hpp"

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

// Points are kept as the products read them.
template <std::size_t Tile>
struct Tiles {
  static constexpr std::size_t kSide = Tile + 2;

  static constexpr std::size_t kNumPoints = kSide * kSide;

  const WinogradJob& job;
  std::size_t first;
  std::size_t count;
  float* points;
  float* products;

  Tiles(const WinogradJob& of, TileRange tiles, float* scratch)
      : job(of),
        first(tiles.first),
        count(tiles.count),
        points(scratch),
        products(scratch + kNumPoints * of.point_stride) {}

  // Takes a tile of the source apart in a vector of channels.
  ARENITE_LANE void enter(const float* const (&source)[kSide], std::size_t pixel_stride,
                          const PointPlace& place, float* to) const {
    Lanes down[kSide][kSide];
#pragma GCC unroll 8
    for (std::size_t x = 0; x < kSide; ++x) {
      Lanes in[kSide];
#pragma GCC unroll 8
      for (std::size_t y = 0; y < kSide; ++y) { in[y] = load(source[y] + x * pixel_stride); }
      Lanes out[kSide];
      WinogradPoints<Tile>::enter(in, out);
#pragma GCC unroll 8
      for (std::size_t y = 0; y < kSide; ++y) { down[y][x] = out[y]; }
    }
#pragma GCC unroll 8
    for (std::size_t y = 0; y < kSide; ++y) {
      Lanes out[kSide];
      WinogradPoints<Tile>::enter(down[y], out);
#pragma GCC unroll 8
      for (std::size_t x = 0; x < kSide; ++x) {
        place.keep(out[x], to + (y * kSide + x) * job.point_stride);
      }
    }
  }

  // All channels of a tile. Where rows, columns or channels of it do not exist it is copied first.
  HWY_NOINLINE void enter_tile(std::size_t index) const {
    const Image<const float>& image = job.source;
    // Above the first row and left of the first column: very large.
    const std::size_t top = (first + index) / job.tile_columns * Tile - job.convolution.padding[0];
    const std::size_t left = (first + index) % job.tile_columns * Tile - job.convolution.padding[3];
    bool is_whole = left < image.columns && kSide <= image.columns - left;
    const float* rows[kSide];
    for (std::size_t y = 0; y < kSide; ++y) {
      rows[y] = top + y < image.rows ? image.row(top + y) : nullptr;
      is_whole = is_whole && rows[y] != nullptr;
    }
    const PointPlace place(job, count, index);
    for (std::size_t channel = 0; channel < image.channels; channel += kLanes) {
      float* to = points + place.of(channel);
      const std::size_t rest = image.channels - channel;
      const float* source[kSide];
      if (is_whole && rest >= kLanes) {
        for (std::size_t y = 0; y < kSide; ++y) {
          source[y] = rows[y] + left * image.pixel_stride + channel;
        }
        enter(source, image.pixel_stride, place, to);
        continue;
      }
      float copies[kSide * kSide * kLanes];
      for (std::size_t y = 0; y < kSide; ++y) {
        float* copy = copies + y * kSide * kLanes;
        source[y] = copy;
        for (std::size_t x = 0; x < kSide; ++x) {
          Lanes value = all_lanes(0.0f);
          if (rows[y] != nullptr && left + x < image.columns) {
            value = load_first(rows[y] + (left + x) * image.pixel_stride + channel, rest);
          }
          store(value, copy + x * kLanes);
        }
      }
      enter(source, kLanes, place, to);
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
        for (std::size_t y = 0; y < Tile; ++y) { down[y][x] = out[y]; }
      }
      const std::size_t top = (first + index) / job.tile_columns * Tile;
      const std::size_t left = (first + index) % job.tile_columns * Tile;
#pragma GCC unroll 8
      for (std::size_t y = 0; y < Tile; ++y) {
        if (top + y - job.rows.first >= job.rows.count) { continue; }
        Lanes out[Tile];
        WinogradPoints<Tile>::leave(down[y], out);
        float* to = job.result.row(top + y) + left * job.result.pixel_stride + channel;
        const float* addend = nullptr;
        if (kept.addend != nullptr) {
          addend = kept.addend->row(top + y) + left * kept.addend->pixel_stride + channel;
        }
#pragma GCC unroll 8
        for (std::size_t x = 0; x < Tile; ++x) {
          if (left + x >= job.result.columns) { break; }
          Lanes sum = add(out[x], bias);
          if (addend != nullptr) {
            sum = add(sum, load_first(addend + x * kept.addend->pixel_stride, num_channels));
          }
          store_first(clamp(sum, min, max), to + x * job.result.pixel_stride, num_channels);
        }
      }
    }
  }

  void enter_all() const {
    for (std::size_t index = 0; index < count; ++index) { enter_tile(index); }
  }

  // The result in panels of channels, two at a time.
  void make(const FilterPart& filter) const {
    const std::size_t stride = kNumPoints * job.filter_stride;
    for (std::size_t panel = filter.first; panel < filter.end; panel += 2) {
      const std::size_t num_panels = filter.end - panel < 2 ? 1 : 2;
      for (std::size_t point = 0; point < kNumPoints; ++point) {
        multiply_panels(job, count, points + point * job.point_stride,
                        filter.panel(job, panel) + point * job.filter_stride, stride, num_panels,
                        products + point * job.product_stride);
      }
      const std::size_t channel = panel * kPanel;
      const std::size_t rest = job.result.channels - channel;
      for (std::size_t column = 0; column < num_panels * kPanel && column < rest;
           column += kLanes) {
        leave_tiles(channel + column, column);
      }
    }
  }
};

template <std::size_t Tile>
HWY_NOINLINE void enter_panel(const WinogradJob& job, std::size_t panel, std::size_t first,
                              std::size_t end, float* transformed) {
  constexpr std::size_t kSide = Tile + 2;
  const std::size_t depth = job.source.channels * kPanel;
  const float* filter = job.convolution.filter + panel * 9 * depth;
  for (std::size_t at = first * kPanel; at < end * kPanel; at += kLanes) {
    Lanes down[kSide][3];
#pragma GCC unroll 8
    for (std::size_t x = 0; x < 3; ++x) {
      Lanes in[3];
#pragma GCC unroll 8
      for (std::size_t y = 0; y < 3; ++y) { in[y] = load(filter + (y * 3 + x) * depth + at); }
      Lanes out[kSide];
      WinogradPoints<Tile>::enter_filter(in, out);
#pragma GCC unroll 8
      for (std::size_t y = 0; y < kSide; ++y) { down[y][x] = out[y]; }
    }
#pragma GCC unroll 8
    for (std::size_t y = 0; y < kSide; ++y) {
      Lanes out[kSide];
      WinogradPoints<Tile>::enter_filter(down[y], out);
#pragma GCC unroll 8
      for (std::size_t x = 0; x < kSide; ++x) {
        store(out[x], transformed + (y * kSide + x) * job.filter_stride + at);
      }
    }
  }
}

void enter_filter(const WinogradJob& job, std::size_t panel, std::size_t first, std::size_t end,
                  float* transformed) {
  (job.convolution.tile == 2 ? enter_panel<2> : enter_panel<4>)(job, panel, first, end,
                                                                transformed);
}

void enter(const WinogradJob& job, TileRange tiles, float* points) {
  if (job.convolution.tile == 2) {
    Tiles<2>(job, tiles, points).enter_all();
  } else {
    Tiles<4>(job, tiles, points).enter_all();
  }
}

void leave(const WinogradJob& job, TileRange tiles, const FilterPart& filter, float* points) {
  if (job.convolution.tile == 2) {
    Tiles<2>(job, tiles, points).make(filter);
  } else {
    Tiles<4>(job, tiles, points).make(filter);
  }
}

constexpr WinogradKernels kKernels{enter_filter, enter, leave};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace arenite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace arenite {

WinogradKernels winograd_kernels() { return ARENITE_COPY(kKernels); }

}  // namespace arenite
#endif
