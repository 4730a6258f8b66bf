#include <limits>

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

// How a tile is transformed in both directions: columns of it that are in registers together.
// Compilers move registers to memory one by one.
enum class Order { kAll, kPairs, kByMemory };

constexpr Order order_of(std::size_t points) {
  if (!HWY_ARCH_ARM_A64 || points == 4) { return Order::kAll; }
  return points == 6 ? Order::kPairs : Order::kByMemory;
}

#if HWY_ARCH_ARM_A64
// Vectors of a tile between its transforms.
template <std::size_t Count>
struct Between {
  float floats[Count * kLanes];

  // Stores neighbours; `to` moves on.
  ARENITE_LANE void keep(float*& to, Lanes a, Lanes b) {
    __asm__("stp %q2, %q3, [%1], #32"
            : "=m"(*reinterpret_cast<float (*)[2 * kLanes]>(to)), "+r"(to)
            : "w"(a.raw), "w"(b.raw));
  }
  // Loads neighbours; `from` moves on by Step vectors.
  template <std::size_t Step>
  ARENITE_LANE void take(const float*& from, Lanes& a, Lanes& b) const {
    float32x4_t first;
    float32x4_t second;
    __asm__("ldp %q0, %q1, [%2], %4"
            : "=w"(first), "=w"(second), "+r"(from)
            : "m"(*reinterpret_cast<const float (*)[2 * kLanes]>(from)), "i"(Step * 16));
    a = Lanes(first);
    b = Lanes(second);
  }
};
#endif

// Points are kept as the products read them.
//
// Of a filter of so many rows and columns; where it has one, a tile has one row or column, too.
template <std::size_t Points, std::size_t Rows, std::size_t Columns>
struct Tiles {
  using Transform = WinogradPoints<Points>;
  static constexpr std::size_t kPointRows = Rows == 1 ? 1 : Points;
  static constexpr std::size_t kPointColumns = Columns == 1 ? 1 : Points;
  static constexpr std::size_t kNumPoints = kPointRows * kPointColumns;
  static constexpr std::size_t kTileRows = kPointRows + 1 - Rows;
  static constexpr std::size_t kTileColumns = kPointColumns + 1 - Columns;
  static constexpr bool kIsLine = kNumPoints == Points;
  static constexpr std::size_t kSide = Points;  // rows and columns of points if it is no line
  static constexpr std::size_t kOne = Transform::kOne;

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
  ARENITE_LANE void enter(const Transform& transform, const float* const (&source)[kPointRows],
                          std::size_t pixel_stride, const PointPlace& place,
                          std::size_t point_stride, float* to) const {
    if constexpr (kIsLine) {
      Lanes in[Points];
#pragma GCC unroll 8
      for (std::size_t i = 0; i < Points; ++i) {
        in[i] = load(Rows == 1 ? source[0] + i * pixel_stride : source[i % kPointRows]);
      }
      Lanes out[Points];
      transform.enter(in, out);
      place.keep(out, to, point_stride);
      return;
    } else if constexpr (order_of(Points) == Order::kPairs) {
      enter_pair<0>(transform, source, pixel_stride, place, point_stride, to);
      enter_pair<1>(transform, source, pixel_stride, place, point_stride, to);
      enter_pair<2>(transform, source, pixel_stride, place, point_stride, to);
      return;
    } else if constexpr (order_of(Points) == Order::kByMemory) {
      enter_by_memory(transform, source, pixel_stride, place, point_stride, to);
      return;
    } else {
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
  }

  // Two columns of points: all 36 would not fit the registers.
  template <std::size_t Pair>
  ARENITE_LANE void enter_pair(const Transform& transform, const float* const (&source)[kPointRows],
                               std::size_t pixel_stride, const PointPlace& place,
                               std::size_t point_stride, float* to) const {
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
      const std::size_t x = Transform::kEntering[Pair][i];
      place.keep(out, to + x * point_stride, kSide * point_stride);
    }
  }

#if HWY_ARCH_ARM_A64
  ARENITE_LANE void enter_by_memory(const Transform& transform,
                                    const float* const (&source)[kPointRows],
                                    std::size_t pixel_stride, const PointPlace& place,
                                    std::size_t point_stride, float* to) const {
    Between<kNumPoints> between;
    float* next = between.floats;
#pragma GCC unroll 8
    for (std::size_t y = 0; y < kSide; ++y) {
      const float* from = source[y];
      Lanes in[kSide];
#pragma GCC unroll 8
      for (std::size_t x = 0; x < kSide; ++x) { in[x] = load_and_step(from, pixel_stride); }
      Lanes out[kSide];
      transform.enter(in, out);
#pragma GCC unroll 8
      for (std::size_t x = 0; x < kSide; x += 2) { between.keep(next, out[x], out[x + 1]); }
    }
    float* behind = to + 2 * place.slots;
    const std::size_t to_next = (kNumPoints - 1) * point_stride;
#pragma GCC unroll 8
    for (std::size_t x = 0; x < kSide; x += 2) {
      const float* from = between.floats + x * kLanes;
      Lanes in[2][kSide];
#pragma GCC unroll 8
      for (std::size_t y = 0; y < kSide; ++y) {
        between.template take<kSide>(from, in[0][y], in[1][y]);
      }
#pragma GCC unroll 2
      for (std::size_t i = 0; i < 2; ++i) {
        Lanes out[kSide];
        transform.enter(in[i], out);
        PointPlace::keep(out, to, behind, kSide * point_stride);
        to -= to_next;
        behind -= to_next;
      }
    }
  }
#endif

  // All channels of a tile. Where rows, columns or channels of it do not exist it is copied first.
  HWY_NOINLINE void enter_tile(std::size_t index) const {
    order_memory();
    const Image<const float>& image = job.source;
    // Above the first row and left of the first column: very large.
    const std::size_t top =
        (first + index) / job.tile_columns * kTileRows - job.convolution.padding[0];
    const std::size_t left =
        (first + index) % job.tile_columns * kTileColumns - job.convolution.padding[3];
    bool is_whole = left < image.columns && kPointColumns <= image.columns - left;
    const float* rows[kPointRows];
    for (std::size_t y = 0; y < kPointRows; ++y) {
      rows[y] = top + y < image.rows ? image.row(top + y) : nullptr;
      is_whole = is_whole && rows[y] != nullptr;
    }
    const PixelSpan inner =
        inside_of(static_cast<std::int64_t>(left), kPointColumns, image.columns);
    float copies[kNumPoints * kPanel];  // of the channels of a panel
    const bool is_copied = !is_whole || image.channels % kLanes != 0;
    if (is_copied) {
      for (float& copy : copies) { copy = 0.0f; }
    }
    const PointPlace place(job, count, index);
    const Transform transform;
    const std::size_t point_stride = job.point_stride;
    for (std::size_t channel = 0; channel < image.channels; channel += kLanes) {
      float* to = points + place.of(channel);
      const float* source[kPointRows];
      if (!is_copied) {
        for (std::size_t y = 0; y < kPointRows; ++y) {
          source[y] = rows[y] + left * image.pixel_stride + channel;
        }
        enter(transform, source, image.pixel_stride, place, point_stride, to);
        continue;
      }
      if (channel % kPanel == 0) { copy_panel(rows, left, inner, channel, copies); }
      for (std::size_t y = 0; y < kPointRows; ++y) {
        source[y] = copies + y * kPointColumns * kPanel + channel % kPanel;
      }
      order_memory();
      enter(transform, source, kPanel, place, point_stride, to);
      order_memory();
    }
    order_memory();
  }

  // Copies so many channels, up to those of a panel, of the pixels of a tile that exist.
  ARENITE_LANE void copy_panel(const float* const (&rows)[kPointRows], std::size_t left,
                               PixelSpan inner, std::size_t channel, float* copies) const {
    const Image<const float>& image = job.source;
    const std::size_t rest = image.channels - channel;
    for (std::size_t y = 0; y < kPointRows; ++y) {
      if (rows[y] == nullptr) { continue; }
      const float* from = rows[y] + (left + inner.first) * image.pixel_stride + channel;
      float* to = copies + (y * kPointColumns + inner.first) * kPanel;
      for (std::size_t x = 0; x < inner.count; ++x, to += kPanel, from += image.pixel_stride) {
        if (rest >= kPanel) {
          Lanes values[kPanel / kLanes];
          load_all(from, values);
          store_all(values, to);
          continue;
        }
        for (std::size_t at = 0; at < rest; at += kLanes) {
          store(load_first(from + at, rest - at), to + at);
        }
      }
    }
  }

  // Where a tile of the result is written to, from a channel on.
  struct Place {
    float* rows[kTileRows];
    std::size_t step;
    const float* addends[kTileRows];
    std::size_t addend_step;
    const float* bias;
  };

  // What vectors of the result are clamped by.
  struct Limits {
    Lanes min;
    Lanes max;
    bool is_below;  // there is a max
    bool is_above;

    ARENITE_LANE explicit Limits(const FloatStore& store)
        : min(all_lanes(store.min)),
          max(all_lanes(store.max)),
          is_below(store.max != std::numeric_limits<float>::infinity()),
          is_above(store.min != -std::numeric_limits<float>::infinity()) {}
  };

  // Writes pixels of a row of a tile of the result, `at` so many channels on.
  template <std::size_t Count>
  ARENITE_LANE void store_row(Lanes (&out)[Count], const Place& place, std::size_t y,
                              std::size_t at, Lanes bias, const Limits& limits) const {
    if constexpr (kOne == 0) {
#pragma GCC unroll 8
      for (std::size_t x = 0; x < Count; ++x) { out[x] = add(out[x], bias); }
    }
    if (place.addends[y] != nullptr) {
      const float* addend = place.addends[y] + at;
#pragma GCC unroll 8
      for (std::size_t x = 0; x < Count; ++x) {
        out[x] = add(out[x], load_and_step(addend, place.addend_step));
      }
    }
    if (limits.is_below) {
#pragma GCC unroll 8
      for (std::size_t x = 0; x < Count; ++x) { out[x] = clamp(out[x], limits.min, limits.max); }
    } else if (limits.is_above) {
#pragma GCC unroll 8
      for (std::size_t x = 0; x < Count; ++x) { out[x] = larger(limits.min, out[x]); }
    }
    store_apart(out, place.rows[y] + at, place.step);
  }

  // Makes a row of a tile of the result from its points and writes it.
  ARENITE_LANE void leave_row(const Transform& transform, const Place& place, std::size_t y,
                              std::size_t at, const Lanes (&down)[kSide], Lanes bias,
                              const Limits& limits) const {
    Lanes out[kTileColumns];
    transform.leave(down, out);
    store_row(out, place, y, at, bias, limits);
  }

  // Puts vectors of channels of a tile of the result together.
  HWY_NOINLINE void leave_channels(const Place& place, std::size_t count, const float* from) const {
    order_memory();
    const Transform transform;
    const Limits limits(job.convolution.store);
    [[maybe_unused]] const std::size_t stride = job.product_stride;
    for (std::size_t at = 0; at < count; at += kLanes, from += kLanes) {
      const Lanes bias = place.bias == nullptr ? all_lanes(0.0f) : load(place.bias + at);
      if constexpr (kIsLine) {
        leave_line(transform, place, at, from, bias, limits);
      } else if constexpr (order_of(Points) == Order::kPairs) {
        leave_pair<0>(transform, place, at, from, bias, limits);
        leave_pair<1>(transform, place, at, from, bias, limits);
      } else if constexpr (order_of(Points) == Order::kByMemory) {
        leave_by_memory(transform, place, at, from, bias, limits);
      } else {
        Lanes down[kTileRows][kSide];
#pragma GCC unroll 8
        for (std::size_t x = 0; x < kSide; ++x) {
          Lanes in[kSide];
#pragma GCC unroll 8
          for (std::size_t y = 0; y < kSide; ++y) { in[y] = load(from + (y * kSide + x) * stride); }
          if (kOne != 0 && x == kOne) { in[kOne] = add(in[kOne], bias); }
          Lanes out[kTileRows];
          transform.leave(in, out);
#pragma GCC unroll 8
          for (std::size_t y = 0; y < kTileRows; ++y) { down[y][x] = out[y]; }
        }
#pragma GCC unroll 8
        for (std::size_t y = 0; y < kTileRows; ++y) {
          leave_row(transform, place, y, at, down[y], bias, limits);
        }
      }
    }
    order_memory();
  }

  ARENITE_LANE void leave_line(const Transform& transform, const Place& place, std::size_t at,
                               const float* from, Lanes bias, const Limits& limits) const {
    Lanes in[Points];
#pragma GCC unroll 8
    for (std::size_t i = 0; i < Points; ++i) { in[i] = load_and_step(from, job.product_stride); }
    in[kOne] = add(in[kOne], bias);
    Lanes out[kTileRows * kTileColumns];
    transform.leave(in, out);
    if constexpr (Rows == 1) {
      store_row(out, place, 0, at, bias, limits);
    } else {
#pragma GCC unroll 8
      for (std::size_t y = 0; y < kTileRows; ++y) {
        Lanes pixel[1] = {out[y]};
        store_row(pixel, place, y, at, bias, limits);
      }
    }
  }

  // Two rows of a tile of the result.
  template <std::size_t Pair>
  ARENITE_LANE void leave_pair(const Transform& transform, const Place& place, std::size_t at,
                               const float* from, Lanes bias, const Limits& limits) const {
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
      leave_row(transform, place, Transform::kLeaving[Pair][i], at, down[i], bias, limits);
    }
  }

#if HWY_ARCH_ARM_A64
  ARENITE_LANE void leave_by_memory(const Transform& transform, const Place& place, std::size_t at,
                                    const float* from, Lanes bias, const Limits& limits) const {
    const std::size_t stride = job.product_stride;
    Between<kSide * kTileRows> between;
    float* next = between.floats;
#pragma GCC unroll 8
    for (std::size_t x = 0; x < kSide; ++x) {
      const float* product = from + x * stride;
      Lanes in[kSide];
#pragma GCC unroll 8
      for (std::size_t y = 0; y < kSide; ++y) { in[y] = load_and_step(product, kSide * stride); }
      if (x == kOne) { in[kOne] = add(in[kOne], bias); }
      Lanes out[kTileRows];
      transform.leave(in, out);
#pragma GCC unroll 8
      for (std::size_t y = 0; y < kTileRows; y += 2) { between.keep(next, out[y], out[y + 1]); }
    }
#pragma GCC unroll 8
    for (std::size_t y = 0; y < kTileRows; y += 2) {
      const float* row = between.floats + y * kLanes;
      Lanes in[2][kSide];
#pragma GCC unroll 8
      for (std::size_t x = 0; x < kSide; ++x) {
        between.template take<kTileRows>(row, in[0][x], in[1][x]);
      }
#pragma GCC unroll 2
      for (std::size_t i = 0; i < 2; ++i) {
        leave_row(transform, place, y + i, at, in[i], bias, limits);
      }
    }
  }
#endif

  // Some channels of a tile of the result. Where rows, columns or channels of a vector do not exist
  // it is made in a copy.
  void leave_tile(std::size_t index, std::size_t channel, std::size_t end) const {
    const Image<float>& image = job.result;
    const FloatStore& kept = job.convolution.store;
    const std::size_t top = (first + index) / job.tile_columns * kTileRows;
    const std::size_t left = (first + index) % job.tile_columns * kTileColumns;
    const std::size_t rest = image.columns - left;
    const std::size_t columns = rest < kTileColumns ? rest : kTileColumns;
    Place place{};
    place.step = image.pixel_stride;
    place.addend_step = kept.addend == nullptr ? 0 : kept.addend->pixel_stride;
    place.bias = kept.bias == nullptr ? nullptr : kept.bias + channel;
    bool is_whole = columns == kTileColumns;
    for (std::size_t y = 0; y < kTileRows; ++y) {
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
    float made[kTileRows * kTileColumns * kLanes];
    float added[kTileRows * kTileColumns * kLanes] = {};
    float bias[kLanes];
    Place copy{};
    copy.step = kLanes;
    copy.addend_step = kLanes;
    if (place.bias != nullptr) {
      store(load_first(place.bias + at, rest), bias);
      copy.bias = bias;
    }
    for (std::size_t y = 0; y < kTileRows; ++y) {
      copy.rows[y] = made + y * kTileColumns * kLanes;
      if (place.addends[y] == nullptr) { continue; }
      float* to = added + y * kTileColumns * kLanes;
      copy.addends[y] = to;
      for (std::size_t x = 0; x < columns; ++x) {
        store(load_first(place.addends[y] + x * place.addend_step + at, rest), to + x * kLanes);
      }
    }
    leave_channels(copy, kLanes, from);
    for (std::size_t y = 0; y < kTileRows; ++y) {
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
                        Transform::kDepth, products + point * job.product_stride);
      }
      const std::size_t end = (panel + num_panels) * kPanel;
      for (std::size_t index = 0; index < count; ++index) {
        leave_tile(index, panel * kPanel, end < job.result.channels ? end : job.result.channels);
      }
    }
  }
};

template <std::size_t Points, std::size_t Rows, std::size_t Columns>
HWY_NOINLINE void enter_panel(const WinogradJob& job, std::size_t panel, std::size_t first,
                              std::size_t end, float* transformed) {
  using Made = Tiles<Points, Rows, Columns>;
  constexpr std::size_t kPointColumns = Made::kPointColumns;
  const std::size_t depth = job.source.channels * kPanel;
  const float* filter = job.convolution.filter + panel * Rows * Columns * depth;
  const std::size_t stride = job.filter_stride;
  order_memory();
  const WinogradPoints<Points> transform;
  for (std::size_t at = first * kPanel; at < end * kPanel; at += kLanes) {
    Lanes across[Rows][kPointColumns];
    const float* from = filter + at;
#pragma GCC unroll 8
    for (std::size_t y = 0; y < Rows; ++y) {
      Lanes in[Columns];
#pragma GCC unroll 8
      for (std::size_t x = 0; x < Columns; ++x) { in[x] = load_and_step(from, depth); }
      if constexpr (Columns == 1) {
        across[y][0] = in[0];
      } else {
        transform.enter_filter(in, across[y]);
      }
    }
    float* to = transformed + at;
    if constexpr (Rows == 1) {
      store_apart(across[0], to, stride);
    } else {
#pragma GCC unroll 8
      for (std::size_t x = 0; x < kPointColumns; ++x) {
        Lanes in[Rows];
#pragma GCC unroll 8
        for (std::size_t y = 0; y < Rows; ++y) { in[y] = across[y][x]; }
        Lanes out[Points];
        transform.enter_filter(in, out);
        store_apart(out, to + x * stride, kPointColumns * stride);
      }
    }
  }
  order_memory();
}

template <std::size_t Points, std::size_t Rows, std::size_t Columns>
void enter(const WinogradJob& job, TileRange tiles, float* points) {
  Tiles<Points, Rows, Columns>(job, tiles, points).enter_all();
}

template <std::size_t Points, std::size_t Rows, std::size_t Columns>
void leave(const WinogradJob& job, TileRange tiles, const FilterPart& filter, float* points) {
  Tiles<Points, Rows, Columns>(job, tiles, points).make(filter);
}

template <std::size_t Points, std::size_t Rows = 3, std::size_t Columns = 3>
constexpr WinogradKernels kKernels{enter_panel<Points, Rows, Columns>, enter<Points, Rows, Columns>,
                                   leave<Points, Rows, Columns>, kMostTiles};

#if HWY_ARCH_ARM_A64
// Of eight points.
template <std::size_t Taps>
WinogradKernels kernels_of_eight(const WinogradTile& tile) {
  if (tile.kernel[0] == 1) { return kKernels<8, 1, Taps>; }
  if (tile.kernel[1] == 1) { return kKernels<8, Taps, 1>; }
  return kKernels<8, Taps, Taps>;
}
#endif

HWY_NOINLINE WinogradKernels kernels_of(const WinogradTile& tile) {
  switch (tile.points()) {
    case 4: return kKernels<4>;
#if HWY_ARCH_ARM_A64
    case 8:
      return tile.taps() == 3   ? kernels_of_eight<3>(tile)
             : tile.taps() == 5 ? kernels_of_eight<5>(tile)
                                : kernels_of_eight<7>(tile);
#endif
    default: return kKernels<6>;
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace arenite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace arenite {

WinogradKernels winograd_kernels(const WinogradTile& tile) {
  return ARENITE_COPY(kernels_of(tile));
}

}  // namespace arenite
#endif
