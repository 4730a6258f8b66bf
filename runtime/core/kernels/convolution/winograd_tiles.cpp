#include <limits>

#include "kernels/highway_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/convolution/winograd_tiles.cpp"
#include "hwy/foreach_target.h"
// After them: compiled for each kind of processor.
#include "kernels/convolution/winograd_job.hpp"
#include "kernels/convolution/winograd_points.hpp"
#include "kernels/convolution/winograd_products.hpp"
#include "kernels/convolution/winograd_source.hpp"
#include "kernels/convolution/winograd_vectors.hpp"

HWY_BEFORE_NAMESPACE();
namespace arenite {
namespace HWY_NAMESPACE {
namespace {

// Tiles of the result, of a filter of so many rows and columns; where it has one, a tile has one
// row or column, too.
template <std::size_t Points, std::size_t Rows, std::size_t Columns>
struct ResultTiles {
  using Transform = WinogradPoints<Points>;
  static constexpr std::size_t kPointRows = Rows == 1 ? 1 : Points;
  static constexpr std::size_t kPointColumns = Columns == 1 ? 1 : Points;
  static constexpr std::size_t kTileRows = kPointRows + 1 - Rows;
  static constexpr std::size_t kTileColumns = kPointColumns + 1 - Columns;
  static constexpr bool kIsLine = Rows == 1 || Columns == 1;
  static constexpr std::size_t kOne = Transform::kOne;
  static constexpr std::size_t kNarrow = Points - 2;  // points of narrow tiles, which come first

  // Rows and columns of points and of results of a kind of tile.
  template <typename Kind>
  static constexpr std::size_t kY = kPointRows - Kind::kLessRows;
  template <typename Kind>
  static constexpr std::size_t kX = kPointColumns - Kind::kLessColumns;
  template <typename Kind>
  static constexpr std::size_t kHigh = kTileRows - Kind::kLessRows;
  template <typename Kind>
  static constexpr std::size_t kWide = kTileColumns - Kind::kLessColumns;

  const TileBlock& block;

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

  // Products of a tile, by whether narrow tiles lack them in rows and in columns.
  struct Products {
    const float* of[2][2];
    std::size_t stride;

    ARENITE_LANE const float* at(std::size_t y, std::size_t x) const {
      const bool in_rows = kPointRows > 1 && y >= kNarrow;
      const bool in_columns = kPointColumns > 1 && x >= kNarrow;
      return of[in_rows][in_columns] + (y * kPointColumns + x) * stride;
    }
    // Loads a column of them.
    template <std::size_t First, std::size_t Count>
    ARENITE_LANE void load_column(std::size_t x, Lanes (&in)[Count]) const {
      const std::size_t step = kPointColumns * stride;
      const float* from = at(First, x);
#pragma GCC unroll 8
      for (std::size_t y = First; y < kNarrow; ++y) { in[y] = load_and_step(from, step); }
      if constexpr (Count > kNarrow) {
        from = at(kNarrow, x);
#pragma GCC unroll 8
        for (std::size_t y = kNarrow; y < Count; ++y) { in[y] = load_and_step(from, step); }
      }
    }
    ARENITE_LANE void step(std::size_t channels) {
#pragma GCC unroll 2
      for (auto& each : of) {
#pragma GCC unroll 2
        for (const float*& from : each) { from += channels; }
      }
    }
  };

  // Puts vectors of channels of a tile of the result together.
  template <typename Kind>
  HWY_NOINLINE void leave_channels(Kind kind, const Place& place, std::size_t num_channels,
                                   Products from) const {
    order_memory();
    const Transform transform;
    const Limits limits(block.job.convolution.store);
    for (std::size_t at = 0; at < num_channels; at += kLanes, from.step(kLanes)) {
      const Lanes bias = place.bias == nullptr ? all_lanes(0.0f) : load(place.bias + at);
      const auto leave_row = [&](const auto& down, std::size_t y) HWY_ATTR {
        Lanes out[kWide<Kind>];
        transform.leave(down, out);
        store_row(out, place, y, at, bias, limits);
      };
      if constexpr (kIsLine) {
        leave_line(kind, transform, place, at, from, bias, limits);
      } else if constexpr (order_of(Points) == Order::kPairs && Kind::kIsFull) {
        leave_pair<0>(transform, from, leave_row);
        leave_pair<1>(transform, from, leave_row);
      } else if constexpr (order_of(Points) == Order::kByMemory) {
        leave_by_memory(kind, transform, from, bias, leave_row);
      } else {
        Lanes down[kHigh<Kind>][kX<Kind>];
#pragma GCC unroll 8
        for (std::size_t x = 0; x < kX<Kind>; ++x) {
          Lanes in[kY<Kind>];
#pragma GCC unroll 8
          for (std::size_t y = 0; y < kY<Kind>; ++y) { in[y] = load(from.at(y, x)); }
          if (kOne != 0 && x == kOne) { in[kOne] = add(in[kOne], bias); }
          Lanes out[kHigh<Kind>];
          transform.leave(in, out);
#pragma GCC unroll 8
          for (std::size_t y = 0; y < kHigh<Kind>; ++y) { down[y][x] = out[y]; }
        }
#pragma GCC unroll 8
        for (std::size_t y = 0; y < kHigh<Kind>; ++y) { leave_row(down[y], y); }
      }
    }
    order_memory();
  }

  template <typename Kind>
  ARENITE_LANE void leave_line(Kind, const Transform& transform, const Place& place, std::size_t at,
                               const Products& from, Lanes bias, const Limits& limits) const {
    Lanes in[kY<Kind> * kX<Kind>];
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kY<Kind> * kX<Kind>; ++i) {
      in[i] = load(Rows == 1 ? from.at(0, i) : from.at(i, 0));
    }
    in[kOne] = add(in[kOne], bias);
    Lanes out[kHigh<Kind> * kWide<Kind>];
    transform.leave(in, out);
    if constexpr (Rows == 1) {
      store_row(out, place, 0, at, bias, limits);
    } else {
#pragma GCC unroll 8
      for (std::size_t y = 0; y < kHigh<Kind>; ++y) {
        Lanes pixel[1] = {out[y]};
        store_row(pixel, place, y, at, bias, limits);
      }
    }
  }

  // Two rows of a tile of the result.
  template <std::size_t Pair, typename LeaveRow>
  ARENITE_LANE void leave_pair(const Transform& transform, const Products& from,
                               const LeaveRow& leave_row) const {
    Lanes down[2][Points];
#pragma GCC unroll 8
    for (std::size_t x = 0; x < Points; ++x) {
      Lanes in[Points];
      from.template load_column<Pair>(x, in);  // of which infinity or 0 is not used
      transform.template leave<Pair>(in, down[0][x], down[1][x]);
    }
#pragma GCC unroll 2
    for (std::size_t i = 0; i < 2; ++i) { leave_row(down[i], Transform::kLeaving[Pair][i]); }
  }

#if HWY_ARCH_ARM_A64
  template <typename Kind, typename LeaveRow>
  ARENITE_LANE void leave_by_memory(Kind, const Transform& transform, const Products& from,
                                    Lanes bias, const LeaveRow& leave_row) const {
    Between<kX<Kind> * kHigh<Kind>> between;
    float* next = between.floats;
#pragma GCC unroll 8
    for (std::size_t x = 0; x < kX<Kind>; ++x) {
      Lanes in[kY<Kind>];
      from.template load_column<0>(x, in);
      if (x == kOne) { in[kOne] = add(in[kOne], bias); }
      Lanes out[kHigh<Kind>];
      transform.leave(in, out);
#pragma GCC unroll 8
      for (std::size_t y = 0; y < kHigh<Kind>; y += 2) { between.keep(next, out[y], out[y + 1]); }
    }
#pragma GCC unroll 8
    for (std::size_t y = 0; y < kHigh<Kind>; y += 2) {
      const float* row = between.floats + y * kLanes;
      Lanes in[2][kX<Kind>];
#pragma GCC unroll 8
      for (std::size_t x = 0; x < kX<Kind>; ++x) {
        between.template take<kHigh<Kind>>(row, in[0][x], in[1][x]);
      }
#pragma GCC unroll 2
      for (std::size_t i = 0; i < 2; ++i) { leave_row(in[i], y + i); }
    }
  }
#endif

  // Some channels of a tile of the result. Where rows, columns or channels of a vector do not exist
  // it is made in a copy.
  void leave_tile(const TilePlace& tile, std::size_t index, std::size_t channel,
                  std::size_t end) const {
    const WinogradJob& job = block.job;
    const Image<float>& image = job.result;
    const FloatStore& kept = job.convolution.store;
    const std::size_t rest = image.columns - tile.left;
    const std::size_t wide = kTileColumns - (tile.is_narrow[1] ? 2 : 0);
    const std::size_t high = kTileRows - (tile.is_narrow[0] ? 2 : 0);
    const std::size_t columns = rest < wide ? rest : wide;
    Place place{};
    place.step = image.pixel_stride;
    place.addend_step = kept.addend == nullptr ? 0 : kept.addend->pixel_stride;
    place.bias = kept.bias == nullptr ? nullptr : kept.bias + channel;
    bool is_whole = columns == wide;
    for (std::size_t y = 0; y < high; ++y) {
      const std::size_t row = tile.top + y;
      if (row - job.rows.first >= job.rows.count) {
        is_whole = false;
        continue;
      }
      place.rows[y] = image.row(row) + tile.left * place.step + channel;
      if (kept.addend != nullptr) {
        place.addends[y] = kept.addend->row(row) + tile.left * place.addend_step + channel;
      }
    }
    const std::size_t num_channels = end - channel;
    const std::size_t whole = is_whole ? num_channels / kLanes * kLanes : 0;
    Products from{{}, job.product_stride};
    for (std::size_t y = 0; y < 2; ++y) {
      for (std::size_t x = 0; x < 2; ++x) {
        from.of[y][x] = block.products + (index - block.full[y][x].first) * kProductColumns;
      }
    }
    constexpr bool kInRows = kTileRows >= kLeastNarrowed;
    constexpr bool kInColumns = kTileColumns >= kLeastNarrowed;
    with_kind<kInRows, kInColumns>(tile, [&](auto kind) {
      if (whole > 0) { leave_channels(kind, place, whole, from); }
      from.step(whole);
      for (std::size_t at = whole; at < num_channels; at += kLanes, from.step(kLanes)) {
        leave_copy(kind, place, columns, at, num_channels - at, from);
      }
    });
  }

  // A vector of channels, so many of which exist.
  template <typename Kind>
  HWY_NOINLINE void leave_copy(Kind kind, const Place& place, std::size_t columns, std::size_t at,
                               std::size_t rest, const Products& from) const {
    float made[kHigh<Kind> * kWide<Kind> * kLanes];
    float added[kHigh<Kind> * kWide<Kind> * kLanes] = {};
    float bias[kLanes];
    Place copy{};
    copy.step = kLanes;
    copy.addend_step = kLanes;
    if (place.bias != nullptr) {
      store(load_first(place.bias + at, rest), bias);
      copy.bias = bias;
    }
    for (std::size_t y = 0; y < kHigh<Kind>; ++y) {
      copy.rows[y] = made + y * kWide<Kind> * kLanes;
      if (place.addends[y] == nullptr) { continue; }
      float* to = added + y * kWide<Kind> * kLanes;
      copy.addends[y] = to;
      for (std::size_t x = 0; x < columns; ++x) {
        store(load_first(place.addends[y] + x * place.addend_step + at, rest), to + x * kLanes);
      }
    }
    leave_channels(kind, copy, kLanes, from);
    for (std::size_t y = 0; y < kHigh<Kind>; ++y) {
      if (place.rows[y] == nullptr) { continue; }
      for (std::size_t x = 0; x < columns; ++x) {
        store_first(load(copy.rows[y] + x * kLanes), place.rows[y] + x * place.step + at, rest);
      }
    }
  }

  // The result in panels of channels, two at a time.
  void make(const FilterPart& filter) const {
    const WinogradJob& job = block.job;
    const std::size_t stride = kPointRows * kPointColumns * job.filter_stride;
    for (std::size_t panel = filter.first; panel < filter.end; panel += 2) {
      const std::size_t num_panels = filter.end - panel < 2 ? 1 : 2;
      for (std::size_t point = 0; point < kPointRows * kPointColumns; ++point) {
        const bool in_rows = kPointRows > 1 && point / kPointColumns >= kNarrow;
        const bool in_columns = kPointColumns > 1 && point % kPointColumns >= kNarrow;
        const std::size_t num_tiles = block.full[in_rows][in_columns].count;
        if (num_tiles == 0) { continue; }
        multiply_panels(job, num_tiles, block.points + point * job.point_stride,
                        filter.panel(job, panel) + point * job.filter_stride, stride, num_panels,
                        Transform::kDepth, block.products + point * job.product_stride);
      }
      const std::size_t end = (panel + num_panels) * kPanel;
      for (std::size_t index = 0; index < block.count; ++index) {
        leave_tile(job.grid.place(block.first + index), index, panel * kPanel,
                   end < job.result.channels ? end : job.result.channels);
      }
    }
  }
};

template <std::size_t Points, std::size_t Rows, std::size_t Columns>
HWY_NOINLINE void enter_panel(const WinogradJob& job, std::size_t panel, std::size_t first,
                              std::size_t end, float* transformed) {
  constexpr std::size_t kPointColumns = Columns == 1 ? 1 : Points;
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
void enter(const WinogradJob& job, Range tiles, float* points) {
  SourceTiles<Points, (Rows > 1), (Columns > 1)>{TileBlock(job, tiles, points)}.enter_all();
}

template <std::size_t Points, std::size_t Rows, std::size_t Columns>
void leave(const WinogradJob& job, Range tiles, const FilterPart& filter, float* points) {
  ResultTiles<Points, Rows, Columns>{TileBlock(job, tiles, points)}.make(filter);
}

template <std::size_t Points, std::size_t Rows = 3, std::size_t Columns = 3>
constexpr WinogradKernels kKernels{enter_panel<Points, Rows, Columns>, enter<Points, Rows, Columns>,
                                   leave<Points, Rows, Columns>, kMostTiles};

#if HWY_ARCH_ARM_A64
template <std::size_t Taps>
WinogradKernels kernels_of_line(const WinogradTile& tile) {
  return tile.kernel[0] == 1 ? kKernels<8, 1, Taps> : kKernels<8, Taps, 1>;
}

WinogradKernels kernels_of_eight(const WinogradTile& tile) {
  if (!tile.is_line()) { return tile.taps() == 3 ? kKernels<8> : kKernels<8, 5, 5>; }
  switch (tile.taps()) {
    case 3: return kernels_of_line<3>(tile);
    case 5: return kernels_of_line<5>(tile);
    default: return kernels_of_line<7>(tile);
  }
}
#endif

HWY_NOINLINE WinogradKernels kernels_of(const WinogradTile& tile) {
  switch (tile.points()) {
    case 4: return kKernels<4>;
#if HWY_ARCH_ARM_A64
    case 8: return kernels_of_eight(tile);
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
