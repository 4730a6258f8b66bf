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

// Stores vectors so many floats apart.
template <std::size_t Count>
ARENITE_LANE void store_apart(const Lanes (&values)[Count], float* to, std::size_t stride) {
#pragma GCC unroll 8
  for (std::size_t i = 0; i < Count; ++i) {
#if HWY_ARCH_ARM_A64
    __asm__ volatile("st1 {%1.4s}, [%0], %2"
                     : "+r"(to)
                     : "w"(values[i].raw), "r"(stride * sizeof(float))
                     : "memory");
#else
    store(values[i], to + i * stride);
#endif
  }
}

// Loads a vector and moves on.
ARENITE_LANE Lanes load_and_step(const float*& from, std::size_t step) {
#if HWY_ARCH_ARM_A64
  float32x4_t value;
  __asm__ volatile("ld1 {%0.4s}, [%1], %2"
                   : "=w"(value), "+r"(from)
                   : "r"(step * sizeof(float))
                   : "memory");
  return Lanes(value);
#else
  const Lanes value = load(from);
  from += step;
  return value;
#endif
}

// Whether the rows of a tile are made in pairs, which takes fewer registers and more loads.
constexpr bool kInPairs = HWY_ARCH_ARM_A64;

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
  ARENITE_LANE void enter(const WinogradPoints<Tile>& transform,
                          const float* const (&source)[kSide], std::size_t pixel_stride,
                          const PointPlace& place, std::size_t point_stride, float* to) const {
    if constexpr (kInPairs && Tile == 4) {
      enter_pair<0>(transform, source, pixel_stride, place, point_stride, to);
      enter_pair<1>(transform, source, pixel_stride, place, point_stride, to);
      enter_pair<2>(transform, source, pixel_stride, place, point_stride, to);
      return;
    }
    Lanes down[kSide][kSide];
#pragma GCC unroll 8
    for (std::size_t x = 0; x < kSide; ++x) {
      Lanes in[kSide];
#pragma GCC unroll 8
      for (std::size_t y = 0; y < kSide; ++y) { in[y] = load(source[y] + x * pixel_stride); }
      Lanes out[kSide];
      transform.enter(in, out);
#pragma GCC unroll 8
      for (std::size_t y = 0; y < kSide; ++y) { down[y][x] = out[y]; }
    }
#pragma GCC unroll 8
    for (std::size_t y = 0; y < kSide; ++y) {
      Lanes out[kSide];
      transform.enter(down[y], out);
      place.keep(out, to + y * kSide * point_stride, point_stride);
    }
  }

  // Two columns of points: all 36 would not fit the registers.
  template <std::size_t Pair>
  ARENITE_LANE void enter_pair(const WinogradPoints<Tile>& transform,
                               const float* const (&source)[kSide], std::size_t pixel_stride,
                               const PointPlace& place, std::size_t point_stride, float* to) const {
    constexpr std::size_t kFirst = Pair == 0 ? 0 : 1;
    Lanes across[2][kSide];
#pragma GCC unroll 8
    for (std::size_t y = 0; y < kSide; ++y) {
      const float* from = source[y] + kFirst * pixel_stride;
      Lanes in[kSide];
#pragma GCC unroll 8
      for (std::size_t x = kFirst; x < kSide - kFirst; ++x) {
        in[x] = load_and_step(from, pixel_stride);
      }
      transform.template enter<Pair>(in, across[0][y], across[1][y]);
    }
#pragma GCC unroll 2
    for (std::size_t i = 0; i < 2; ++i) {
      Lanes out[kSide];
      transform.enter(across[i], out);
      const std::size_t x = WinogradPoints<Tile>::kEntering[Pair][i];
      place.keep(out, to + x * point_stride, kSide * point_stride);
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
    const PixelSpan inner = inside_of(static_cast<std::int64_t>(left), kSide, image.columns);
    float copies[kSide * kSide * kLanes];
    if (!is_whole || image.channels % kLanes != 0) {
      for (float& copy : copies) { copy = 0.0f; }
    }
    const PointPlace place(job, count, index);
    const WinogradPoints<Tile> transform;
    const std::size_t point_stride = job.point_stride;
    for (std::size_t channel = 0; channel < image.channels; channel += kLanes) {
      float* to = points + place.of(channel);
      const std::size_t rest = image.channels - channel;
      const float* source[kSide];
      if (is_whole && rest >= kLanes) {
        for (std::size_t y = 0; y < kSide; ++y) {
          source[y] = rows[y] + left * image.pixel_stride + channel;
        }
        enter(transform, source, image.pixel_stride, place, point_stride, to);
        continue;
      }
      for (std::size_t y = 0; y < kSide; ++y) {
        float* copy = copies + y * kSide * kLanes;
        source[y] = copy;
        if (rows[y] == nullptr) { continue; }
        const float* from = rows[y] + (left + inner.first) * image.pixel_stride + channel;
        copy += inner.first * kLanes;
        for (std::size_t x = 0; x < inner.count; ++x) {
          store(load_first(from, rest), copy);
          from += image.pixel_stride;
          copy += kLanes;
        }
      }
      enter(transform, source, kLanes, place, point_stride, to);
    }
  }

  // What all tiles of a vector of channels share.
  struct Leaving {
    std::size_t channel;
    std::size_t num_channels;  // from there on
    Lanes bias;
    Lanes min;
    Lanes max;
  };

  // Writes a row of a tile of the result.
  ARENITE_LANE void leave_row(const WinogradPoints<Tile>& transform, const Leaving& made,
                              std::size_t row, std::size_t left, const Lanes (&down)[kSide]) const {
    if (row - job.rows.first >= job.rows.count) { return; }
    const FloatStore& kept = job.convolution.store;
    const std::size_t step = job.result.pixel_stride;
    Lanes out[Tile];
    transform.leave(down, out);
    float* to = job.result.row(row) + left * step + made.channel;
    const float* addend = nullptr;
    std::size_t addend_step = 0;
    if (kept.addend != nullptr) {
      addend_step = kept.addend->pixel_stride;
      addend = kept.addend->row(row) + left * addend_step + made.channel;
    }
    if (kInPairs && job.result.columns - left >= Tile && made.num_channels >= kLanes) {
#pragma GCC unroll 8
      for (std::size_t x = 0; x < Tile; ++x) { out[x] = add(out[x], made.bias); }
      if (addend != nullptr) {
#pragma GCC unroll 8
        for (std::size_t x = 0; x < Tile; ++x) {
          out[x] = add(out[x], load_and_step(addend, addend_step));
        }
      }
#pragma GCC unroll 8
      for (std::size_t x = 0; x < Tile; ++x) { out[x] = clamp(out[x], made.min, made.max); }
      store_apart(out, to, step);
      return;
    }
#pragma GCC unroll 8
    for (std::size_t x = 0; x < Tile; ++x) {
      if (left + x >= job.result.columns) { break; }
      Lanes sum = add(out[x], made.bias);
      if (addend != nullptr) {
        sum = add(sum, load_first(addend + x * addend_step, made.num_channels));
      }
      store_first(clamp(sum, made.min, made.max), to + x * step, made.num_channels);
    }
  }

  // Two rows of a tile of the result.
  template <std::size_t Pair>
  ARENITE_LANE void leave_pair(const WinogradPoints<Tile>& transform, const Leaving& made,
                               std::size_t top, std::size_t left, const float* from,
                               std::size_t product_stride) const {
    Lanes down[2][kSide];
#pragma GCC unroll 8
    for (std::size_t x = 0; x < kSide; ++x) {
      const float* at = from + (x + (Pair == 0 ? 0 : kSide)) * product_stride;
      Lanes in[kSide];
#pragma GCC unroll 8
      for (std::size_t y = Pair; y < kSide - 1 + Pair; ++y) {
        in[y] = load_and_step(at, kSide * product_stride);
      }
      transform.template leave<Pair>(in, down[0][x], down[1][x]);
    }
#pragma GCC unroll 2
    for (std::size_t i = 0; i < 2; ++i) {
      leave_row(transform, made, top + WinogradPoints<Tile>::kLeaving[Pair][i], left, down[i]);
    }
  }

  // Puts tiles of the result together in a vector of channels; `column` counts in the products.
  HWY_NOINLINE void leave_tiles(std::size_t channel, std::size_t column) const {
    const FloatStore& kept = job.convolution.store;
    const std::size_t num_channels = job.result.channels - channel;
    const Lanes bias =
        kept.bias == nullptr ? all_lanes(0.0f) : load_first(kept.bias + channel, num_channels);
    const WinogradPoints<Tile> transform;
    const Leaving made{channel, num_channels, bias, all_lanes(kept.min), all_lanes(kept.max)};
    const std::size_t stride = job.product_stride;
    const float* from = products + column;
    for (std::size_t index = 0; index < count; ++index, from += kProductColumns) {
      const std::size_t top = (first + index) / job.tile_columns * Tile;
      const std::size_t left = (first + index) % job.tile_columns * Tile;
      if constexpr (kInPairs && Tile == 4) {
        leave_pair<0>(transform, made, top, left, from, stride);
        leave_pair<1>(transform, made, top, left, from, stride);
        continue;
      }
      Lanes down[Tile][kSide];
#pragma GCC unroll 8
      for (std::size_t x = 0; x < kSide; ++x) {
        Lanes in[kSide];
#pragma GCC unroll 8
        for (std::size_t y = 0; y < kSide; ++y) { in[y] = load(from + (y * kSide + x) * stride); }
        Lanes out[Tile];
        transform.leave(in, out);
#pragma GCC unroll 8
        for (std::size_t y = 0; y < Tile; ++y) { down[y][x] = out[y]; }
      }
#pragma GCC unroll 8
      for (std::size_t y = 0; y < Tile; ++y) { leave_row(transform, made, top + y, left, down[y]); }
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

// Two rows of the points of a filter.
template <std::size_t Pair>
ARENITE_LANE void enter_filter_pair(const WinogradPoints<4>& transform, const float* filter,
                                    std::size_t depth, std::size_t stride, float* to) {
  Lanes down[2][3];
#pragma GCC unroll 8
  for (std::size_t x = 0; x < 3; ++x) {
    Lanes in[3];
#pragma GCC unroll 8
    for (std::size_t y = 0; y < 3; ++y) { in[y] = load(filter + (y * 3 + x) * depth); }
    transform.enter_filter<Pair>(in, down[0][x], down[1][x]);
  }
#pragma GCC unroll 2
  for (std::size_t i = 0; i < 2; ++i) {
    Lanes out[6];
    transform.enter_filter(down[i], out);
    store_apart(out, to + WinogradPoints<4>::kEntering[Pair][i] * 6 * stride, stride);
  }
}

template <std::size_t Tile>
HWY_NOINLINE void enter_panel(const WinogradJob& job, std::size_t panel, std::size_t first,
                              std::size_t end, float* transformed) {
  constexpr std::size_t kSide = Tile + 2;
  const std::size_t depth = job.source.channels * kPanel;
  const float* filter = job.convolution.filter + panel * 9 * depth;
  const std::size_t stride = job.filter_stride;
  const WinogradPoints<Tile> transform;
  for (std::size_t at = first * kPanel; at < end * kPanel; at += kLanes) {
    if constexpr (kInPairs && Tile == 4) {
      enter_filter_pair<0>(transform, filter + at, depth, stride, transformed + at);
      enter_filter_pair<1>(transform, filter + at, depth, stride, transformed + at);
      enter_filter_pair<2>(transform, filter + at, depth, stride, transformed + at);
      continue;
    }
    Lanes down[kSide][3];
#pragma GCC unroll 8
    for (std::size_t x = 0; x < 3; ++x) {
      Lanes in[3];
#pragma GCC unroll 8
      for (std::size_t y = 0; y < 3; ++y) { in[y] = load(filter + (y * 3 + x) * depth + at); }
      Lanes out[kSide];
      transform.enter_filter(in, out);
#pragma GCC unroll 8
      for (std::size_t y = 0; y < kSide; ++y) { down[y][x] = out[y]; }
    }
#pragma GCC unroll 8
    for (std::size_t y = 0; y < kSide; ++y) {
      Lanes out[kSide];
      transform.enter_filter(down[y], out);
      store_apart(out, transformed + y * kSide * stride + at, stride);
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

constexpr WinogradKernels kKernels{enter_filter, enter, leave, kMostTiles};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace arenite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace arenite {

WinogradKernels winograd_kernels() { return ARENITE_COPY(kKernels); }

}  // namespace arenite
#endif
