// Tiles of the source of a Winograd convolution, which are taken apart into points.
#if defined(ARENITE_WINOGRAD_SOURCE) == defined(HWY_TARGET_TOGGLE)  // once for each kind
#ifdef ARENITE_WINOGRAD_SOURCE
#undef ARENITE_WINOGRAD_SOURCE
#else
#define ARENITE_WINOGRAD_SOURCE
#endif

#include "kernels/convolution/winograd_points.hpp"
#include "kernels/convolution/winograd_products.hpp"
#include "kernels/convolution/winograd_vectors.hpp"

HWY_BEFORE_NAMESPACE();
namespace arenite {
namespace HWY_NAMESPACE {
namespace {

// Points are kept as the products read them. Of a filter that has several rows, columns or both.
template <std::size_t Points, bool HasRows, bool HasColumns>
struct SourceTiles {
  using Transform = WinogradPoints<Points>;
  static constexpr std::size_t kPointRows = HasRows ? Points : 1;
  static constexpr std::size_t kPointColumns = HasColumns ? Points : 1;
  static constexpr std::size_t kNarrow = Points - 2;  // points of narrow tiles, which come first

  // Rows and columns of points of a kind of tile.
  template <typename Kind>
  static constexpr std::size_t kY = kPointRows - Kind::kLessRows;
  template <typename Kind>
  static constexpr std::size_t kX = kPointColumns - Kind::kLessColumns;

  const TileBlock& block;

  // Where points of a tile are kept, by whether narrow tiles lack them in rows and in columns.
  struct PointPlaces {
    PointPlace of[2][2];
    std::size_t stride;

    PointPlaces(const TileBlock& block, std::size_t index)
        : of{{place(block, index, false, false), place(block, index, false, true)},
             {place(block, index, true, false), place(block, index, true, true)}},
          stride(block.job.point_stride) {}

    static PointPlace place(const TileBlock& block, std::size_t index, bool in_rows,
                            bool in_columns) {
      const Range& some = block.full[in_rows][in_columns];
      return PointPlace(block.job, some.count, index - some.first);
    }

    // Keeps the first points or the last ones, those that narrow tiles lack.
    template <std::size_t From, std::size_t Count, std::size_t All>
    ARENITE_LANE static void keep_some(const PointPlace& place, const Lanes (&values)[All],
                                       float* to, std::size_t step) {
      Lanes some[Count];
#pragma GCC unroll 8
      for (std::size_t i = 0; i < Count; ++i) { some[i] = values[From + i]; }
      place.keep(some, to, step);
    }
    // Keeps points `step` apart, of channels from one on.
    template <std::size_t Count>
    ARENITE_LANE static void keep_line(const PointPlace& first, const PointPlace& last,
                                       const Lanes (&values)[Count], float* to, std::size_t step,
                                       std::size_t channel) {
      keep_some<0, kNarrow>(first, values, to + first.of(channel), step);
      if constexpr (Count > kNarrow) {
        keep_some<kNarrow, 2>(last, values, to + kNarrow * step + last.of(channel), step);
      }
    }
    template <std::size_t Count>
    ARENITE_LANE void keep_row(const Lanes (&values)[Count], float* points, std::size_t y,
                               std::size_t channel) const {
      const std::size_t at = kPointRows > 1 && y >= kNarrow;
      keep_line(of[at][0], of[at][1], values, points + y * kPointColumns * stride, stride, channel);
    }
    template <std::size_t Count>
    ARENITE_LANE void keep_column(const Lanes (&values)[Count], float* points, std::size_t x,
                                  std::size_t channel) const {
      const std::size_t at = kPointColumns > 1 && x >= kNarrow;
      keep_line(of[0][at], of[1][at], values, points + x * stride, kPointColumns * stride, channel);
    }
  };

  // Takes a tile of the source apart in a vector of channels.
  template <typename Kind>
  ARENITE_LANE void enter(Kind kind, const Transform& transform,
                          const float* const (&source)[kPointRows], std::size_t pixel_stride,
                          const PointPlaces& places, std::size_t channel) const {
    if constexpr (!HasRows || !HasColumns) {
      Lanes in[kY<Kind> * kX<Kind>];
#pragma GCC unroll 8
      for (std::size_t i = 0; i < kY<Kind> * kX<Kind>; ++i) {
        in[i] = load(!HasRows ? source[0] + i * pixel_stride : source[i % kPointRows]);
      }
      Lanes out[kY<Kind> * kX<Kind>];
      transform.enter(in, out);
      if constexpr (!HasRows) {
        places.keep_row(out, block.points, 0, channel);
      } else {
        places.keep_column(out, block.points, 0, channel);
      }
    } else if constexpr (order_of(Points) == Order::kPairs && Kind::kIsFull) {
      enter_pair<0>(transform, source, pixel_stride, places, channel);
      enter_pair<1>(transform, source, pixel_stride, places, channel);
      enter_pair<2>(transform, source, pixel_stride, places, channel);
    } else if constexpr (order_of(Points) == Order::kByMemory) {
      enter_by_memory(kind, transform, source, pixel_stride, places, channel);
    } else {
      Lanes down[kY<Kind>][kX<Kind>];
#pragma GCC unroll 8
      for (std::size_t x = 0; x < kX<Kind>; ++x) {
        Lanes in[kY<Kind>];
#pragma GCC unroll 8
        for (std::size_t y = 0; y < kY<Kind>; ++y) { in[y] = load(source[y] + x * pixel_stride); }
        Lanes out[kY<Kind>];
        transform.enter(in, out);
#pragma GCC unroll 8
        for (std::size_t y = 0; y < kY<Kind>; ++y) { down[y][x] = out[y]; }
      }
#pragma GCC unroll 8
      for (std::size_t y = 0; y < kY<Kind>; ++y) {
        Lanes out[kX<Kind>];
        transform.enter(down[y], out);
        places.keep_row(out, block.points, y, channel);
      }
    }
  }

  // Two columns of points: all 36 would not fit the registers.
  template <std::size_t Pair>
  ARENITE_LANE void enter_pair(const Transform& transform, const float* const (&source)[kPointRows],
                               std::size_t pixel_stride, const PointPlaces& places,
                               std::size_t channel) const {
    constexpr std::size_t kFirst = Pair == 0 ? 0 : 1;
    Lanes across[2][Points];
#pragma GCC unroll 8
    for (std::size_t y = 0; y < Points; ++y) {
      const float* from = source[y] + kFirst * pixel_stride;
      Lanes in[Points];
#pragma GCC unroll 8
      for (std::size_t x = kFirst; x < Points - kFirst; ++x) {
        in[x] = load_and_step(from, pixel_stride);
      }
      transform.template enter<Pair>(in, across[0][y], across[1][y]);
    }
#pragma GCC unroll 2
    for (std::size_t i = 0; i < 2; ++i) {
      Lanes out[Points];
      transform.enter(across[i], out);
      places.keep_column(out, block.points, Transform::kEntering[Pair][i], channel);
    }
  }

#if HWY_ARCH_ARM_A64
  template <typename Kind>
  ARENITE_LANE void enter_by_memory(Kind, const Transform& transform,
                                    const float* const (&source)[kPointRows],
                                    std::size_t pixel_stride, const PointPlaces& places,
                                    std::size_t channel) const {
    Between<kY<Kind> * kX<Kind>> between;
    float* next = between.floats;
#pragma GCC unroll 8
    for (std::size_t y = 0; y < kY<Kind>; ++y) {
      const float* from = source[y];
      Lanes in[kX<Kind>];
#pragma GCC unroll 8
      for (std::size_t x = 0; x < kX<Kind>; ++x) { in[x] = load_and_step(from, pixel_stride); }
      Lanes out[kX<Kind>];
      transform.enter(in, out);
#pragma GCC unroll 8
      for (std::size_t x = 0; x < kX<Kind>; x += 2) { between.keep(next, out[x], out[x + 1]); }
    }
#pragma GCC unroll 8
    for (std::size_t x = 0; x < kX<Kind>; x += 2) {
      const float* from = between.floats + x * kLanes;
      Lanes in[2][kY<Kind>];
#pragma GCC unroll 8
      for (std::size_t y = 0; y < kY<Kind>; ++y) {
        between.template take<kX<Kind>>(from, in[0][y], in[1][y]);
      }
#pragma GCC unroll 2
      for (std::size_t i = 0; i < 2; ++i) {
        Lanes out[kY<Kind>];
        transform.enter(in[i], out);
        places.keep_column(out, block.points, x + i, channel);
      }
    }
  }
#endif

  // Some channels of a tile.
  template <typename Kind>
  HWY_NOINLINE void enter_channels(Kind kind, const float* const (&from)[kPointRows],
                                   std::size_t pixel_stride, const PointPlaces& places,
                                   std::size_t first, std::size_t end) const {
    order_memory();
    const Transform transform;
    const float* source[kPointRows] = {};
    for (std::size_t y = 0; y < kY<Kind>; ++y) { source[y] = from[y]; }
    for (std::size_t channel = first; channel < end; channel += kLanes) {
      enter(kind, transform, source, pixel_stride, places, channel);
      for (std::size_t y = 0; y < kY<Kind>; ++y) { source[y] += kLanes; }
    }
    order_memory();
  }

  // All channels of a tile. Where rows, columns or channels of it do not exist it is copied first.
  void enter_tile(const TilePlace& at, std::size_t index) const {
    const WinogradJob& job = block.job;
    const Image<const float>& image = job.source;
    // Above the first row and left of the first column: very large.
    const std::size_t top = at.top - job.convolution.padding[0];
    const std::size_t left = at.left - job.convolution.padding[3];
    const std::size_t num_columns = kPointColumns - (at.is_narrow[1] ? 2 : 0);
    bool is_whole = left < image.columns && num_columns <= image.columns - left;
    const std::size_t num_rows = kPointRows - (at.is_narrow[0] ? 2 : 0);
    const float* rows[kPointRows] = {};
    for (std::size_t y = 0; y < num_rows; ++y) {
      rows[y] = top + y < image.rows ? image.row(top + y) : nullptr;
      is_whole = is_whole && rows[y] != nullptr;
    }
    const PointPlaces places(block, index);
    const auto enter_some = [&](const float* const(&from)[kPointRows], std::size_t pixel_stride,
                                std::size_t first, std::size_t end) {
      constexpr bool kHasNarrow = Points > 4;
      with_kind<HasRows && kHasNarrow, HasColumns && kHasNarrow>(
          at, [&](auto kind) { enter_channels(kind, from, pixel_stride, places, first, end); });
    };
    const float* source[kPointRows] = {};
    if (is_whole && image.channels % kLanes == 0) {
      for (std::size_t y = 0; y < num_rows; ++y) {
        source[y] = rows[y] + left * image.pixel_stride;
      }
      enter_some(source, image.pixel_stride, 0, image.channels);
      return;
    }
    const PixelSpan inner = inside_of(static_cast<std::int64_t>(left), num_columns, image.columns);
    float copies[kPointRows * kPointColumns * kPanel] = {};  // of the channels of a panel
    for (std::size_t y = 0; y < kPointRows; ++y) {
      source[y] = copies + y * kPointColumns * kPanel;
    }
    for (std::size_t channel = 0; channel < image.channels; channel += kPanel) {
      copy_panel(rows, left, inner, channel, copies);
      const std::size_t end = channel + kPanel;
      enter_some(source, kPanel, channel, end < image.channels ? end : image.channels);
    }
  }

  // Copies so many channels, up to those of a panel, of the pixels of a tile that exist.
  ARENITE_LANE void copy_panel(const float* const (&rows)[kPointRows], std::size_t left,
                               PixelSpan inner, std::size_t channel, float* copies) const {
    const Image<const float>& image = block.job.source;
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

  void enter_all() const {
    for (std::size_t index = 0; index < block.count; ++index) {
      enter_tile(block.job.grid.place(block.first + index), index);
    }
  }
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace arenite
HWY_AFTER_NAMESPACE();

#endif  // once for each kind
