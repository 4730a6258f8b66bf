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

// Assembly names no memory, or constants would be loaded again after it: loads and stores of the
// compiler stay on their side of this.
ARENITE_LANE void order_memory() {
#if HWY_ARCH_ARM_A64
  __asm__ volatile("" : : : "memory");
#endif
}

// Stores vectors so many floats apart.
template <std::size_t Count>
ARENITE_LANE void store_apart(const Lanes (&values)[Count], float* to, std::size_t stride) {
#pragma GCC unroll 8
  for (std::size_t i = 0; i < Count; ++i) {
#if HWY_ARCH_ARM_A64
    __asm__ volatile("st1 {%1.4s}, [%0], %2"
                     : "+r"(to)
                     : "w"(values[i].raw), "r"(stride * sizeof(float)));
#else
    store(values[i], to + i * stride);
#endif
  }
}

// Loads a vector and moves on.
ARENITE_LANE Lanes load_and_step(const float*& from, std::size_t step) {
#if HWY_ARCH_ARM_A64
  float32x4_t value;
  __asm__ volatile("ld1 {%0.4s}, [%1], %2" : "=w"(value), "+r"(from) : "r"(step * sizeof(float)));
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
    order_memory();
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
      order_memory();
      enter(transform, source, kLanes, place, point_stride, to);
      order_memory();
    }
    order_memory();
  }

  // Where a tile of the result is written to, from a channel on.
  struct Place {
    float* rows[Tile];
    std::size_t step;
    const float* addends[Tile];
    std::size_t addend_step;
    const float* bias;
  };

  // Writes a row of a tile of the result, `at` so many channels on.
  ARENITE_LANE void leave_row(const WinogradPoints<Tile>& transform, const Place& place,
                              std::size_t y, std::size_t at, const Lanes (&down)[kSide], Lanes bias,
                              Lanes min, Lanes max) const {
    Lanes out[Tile];
    transform.leave(down, out);
#pragma GCC unroll 8
    for (std::size_t x = 0; x < Tile; ++x) { out[x] = add(out[x], bias); }
    if (place.addends[y] != nullptr) {
      const float* addend = place.addends[y] + at;
#pragma GCC unroll 8
      for (std::size_t x = 0; x < Tile; ++x) {
        out[x] = add(out[x], load_and_step(addend, place.addend_step));
      }
    }
#pragma GCC unroll 8
    for (std::size_t x = 0; x < Tile; ++x) { out[x] = clamp(out[x], min, max); }
    store_apart(out, place.rows[y] + at, place.step);
  }

  // Puts vectors of channels of a tile of the result together.
  HWY_NOINLINE void leave_channels(const Place& place, std::size_t count, const float* from) const {
    order_memory();
    const WinogradPoints<Tile> transform;
    const Lanes min = all_lanes(job.convolution.store.min);
    const Lanes max = all_lanes(job.convolution.store.max);
    const std::size_t stride = job.product_stride;
    for (std::size_t at = 0; at < count; at += kLanes, from += kLanes) {
      const Lanes bias = place.bias == nullptr ? all_lanes(0.0f) : load(place.bias + at);
      if constexpr (kInPairs && Tile == 4) {
        leave_pair<0>(transform, place, at, from, bias, min, max);
        leave_pair<1>(transform, place, at, from, bias, min, max);
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
      for (std::size_t y = 0; y < Tile; ++y) {
        leave_row(transform, place, y, at, down[y], bias, min, max);
      }
    }
    order_memory();
  }

  // Two rows of a tile of the result.
  template <std::size_t Pair>
  ARENITE_LANE void leave_pair(const WinogradPoints<Tile>& transform, const Place& place,
                               std::size_t at, const float* from, Lanes bias, Lanes min,
                               Lanes max) const {
    const std::size_t stride = job.product_stride;
    Lanes down[2][kSide];
#pragma GCC unroll 8
    for (std::size_t x = 0; x < kSide; ++x) {
      const float* next = from + (x + (Pair == 0 ? 0 : kSide)) * stride;
      Lanes in[kSide];
#pragma GCC unroll 8
      for (std::size_t y = Pair; y < kSide - 1 + Pair; ++y) {
        in[y] = load_and_step(next, kSide * stride);
      }
      transform.template leave<Pair>(in, down[0][x], down[1][x]);
    }
#pragma GCC unroll 2
    for (std::size_t i = 0; i < 2; ++i) {
      leave_row(transform, place, WinogradPoints<Tile>::kLeaving[Pair][i], at, down[i], bias, min,
                max);
    }
  }

  // Some channels of a tile of the result. Where rows, columns or channels of a vector do not exist
  // it is made in a copy.
  void leave_tile(std::size_t index, std::size_t channel, std::size_t end) const {
    const Image<float>& image = job.result;
    const FloatStore& kept = job.convolution.store;
    const std::size_t top = (first + index) / job.tile_columns * Tile;
    const std::size_t left = (first + index) % job.tile_columns * Tile;
    const std::size_t columns = image.columns - left < Tile ? image.columns - left : Tile;
    Place place{};
    place.step = image.pixel_stride;
    place.addend_step = kept.addend == nullptr ? 0 : kept.addend->pixel_stride;
    place.bias = kept.bias == nullptr ? nullptr : kept.bias + channel;
    bool is_whole = columns == Tile;
    for (std::size_t y = 0; y < Tile; ++y) {
      const std::size_t row = top + y;
      if (row - job.rows.first >= job.rows.count) {
        is_whole = false;
        continue;
      }
      place.rows[y] = image.row(row) + left * place.step + channel;
      if (kept.addend != nullptr) {
        place.addends[y] = kept.addend->row(row) + left * place.addend_step + channel;
      }
    }
    const std::size_t count = end - channel;
    const std::size_t whole = is_whole ? count / kLanes * kLanes : 0;
    const float* from = products + index * kProductColumns;
    if (whole > 0) { leave_channels(place, whole, from); }
    for (std::size_t at = whole; at < count; at += kLanes) {
      leave_copy(place, columns, at, count - at, from + at);
    }
  }

  // A vector of channels, so many of which exist.
  HWY_NOINLINE void leave_copy(const Place& place, std::size_t columns, std::size_t at,
                               std::size_t rest, const float* from) const {
    float made[Tile * Tile * kLanes];
    float added[Tile * Tile * kLanes] = {};
    float bias[kLanes];
    Place copy{};
    copy.step = kLanes;
    copy.addend_step = kLanes;
    if (place.bias != nullptr) {
      store(load_first(place.bias + at, rest), bias);
      copy.bias = bias;
    }
    for (std::size_t y = 0; y < Tile; ++y) {
      copy.rows[y] = made + y * Tile * kLanes;
      if (place.addends[y] == nullptr) { continue; }
      float* to = added + y * Tile * kLanes;
      copy.addends[y] = to;
      for (std::size_t x = 0; x < columns; ++x) {
        store(load_first(place.addends[y] + x * place.addend_step + at, rest), to + x * kLanes);
      }
    }
    leave_channels(copy, kLanes, from);
    for (std::size_t y = 0; y < Tile; ++y) {
      if (place.rows[y] == nullptr) { continue; }
      for (std::size_t x = 0; x < columns; ++x) {
        store_first(load(copy.rows[y] + x * kLanes), place.rows[y] + x * place.step + at, rest);
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
      const std::size_t end = (panel + num_panels) * kPanel;
      for (std::size_t index = 0; index < count; ++index) {
        leave_tile(index, panel * kPanel, end < job.result.channels ? end : job.result.channels);
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
  const std::size_t stride = job.filter_stride;
  order_memory();
  const WinogradPoints<Tile> transform;
  for (std::size_t at = first * kPanel; at < end * kPanel; at += kLanes) {
    Lanes across[3][kSide];
    const float* from = filter + at;
#pragma GCC unroll 8
    for (std::size_t y = 0; y < 3; ++y) {
      Lanes in[3];
#pragma GCC unroll 8
      for (std::size_t x = 0; x < 3; ++x) { in[x] = load_and_step(from, depth); }
      transform.enter_filter(in, across[y]);
    }
    float* to = transformed + at;
#pragma GCC unroll 8
    for (std::size_t x = 0; x < kSide; ++x) {
      const Lanes in[3] = {across[0][x], across[1][x], across[2][x]};
      Lanes out[kSide];
      transform.enter_filter(in, out);
      store_apart(out, to + x * stride, kSide * stride);
    }
  }
  order_memory();
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
