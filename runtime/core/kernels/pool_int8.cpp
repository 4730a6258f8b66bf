#include "kernels/highway_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pool_int8.cpp"
#include "hwy/foreach_target.h"
// After them: compiled for each kind of processor.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/lanes.hpp"
#include "kernels/parallel.hpp"
#include "kernels/pool_int8.hpp"
#include "kernels/requantise.hpp"

HWY_BEFORE_NAMESPACE();
namespace arenite {
namespace HWY_NAMESPACE {
namespace {

// Taps of a window along an axis, for averages that share the sums of columns.
constexpr std::size_t kMostTaps = 16;
// Elements whose sum fits 16 bits.
constexpr std::size_t kFew = 128;
// Channels of a pixel that are averaged together.
constexpr std::size_t kBlock = 128;

// A row of a result, and the taps of its windows.
template <typename T>
struct Row {
  const Int8Pool& pool;
  const Image<const T>& source;
  const Image<T>& result;
  WindowSpan rows;
  T* to;
  T min;  // bounds of a maximum
  T max;

  ARENITE_LANE WindowSpan columns(std::size_t column) const {
    return window_span(pool.window, 1, column, source.columns);
  }

  // Calls visit(elements) for each tap inside, from a channel on.
  template <typename Visit>
  ARENITE_LANE void each_tap(const WindowSpan& columns, std::size_t channel,
                             const Visit& visit) const {
    const auto& dilations = pool.window.dilations;
    const std::size_t count = columns.inside();
    if (count == 0) { return; }
    const auto at = [](const WindowSpan& span, std::size_t tap, std::uint32_t dilation) HWY_ATTR {
      return static_cast<std::size_t>(span.start + static_cast<std::int64_t>(tap) * dilation);
    };
    const std::size_t step = dilations[1] * source.pixel_stride;
    const std::size_t left =
        at(columns, columns.first, dilations[1]) * source.pixel_stride + channel;
    for (std::size_t i = rows.first; i < rows.last; ++i) {
      const T* from = source.row(at(rows, i, dilations[0])) + left;
      for (std::size_t j = 0; j < count; ++j) {
        visit(from);
        from += step;
      }
    }
  }
};

ARENITE_LANE std::size_t divisor_of(const Int8Pool& pool, const WindowSpan& rows,
                                    const WindowSpan& columns) {
  const std::size_t inside = rows.inside() * columns.inside();
  return pool.is_sum           ? 1
         : pool.counts_padding ? rows.padded * columns.padded
                               : std::max<std::size_t>(inside, 1);
}

// Writes sums of `taps` elements, divided, as results.
template <typename T, typename Number>
ARENITE_LANE void store_all(const Int8Pool& pool, const Number* HWY_RESTRICT values,
                            std::size_t count, std::size_t taps, std::size_t divisor,
                            T* HWY_RESTRICT to) {
  const Rounding<T> rounding(pool.min, pool.max, pool.zero_point);
  const auto zero = static_cast<std::int32_t>(taps) * pool.source_zero_point;
  const auto by = static_cast<float>(divisor);
  const float ratio = pool.ratio;
  for (std::size_t c = 0; c < count; ++c) {
    const float value = static_cast<float>(static_cast<std::int32_t>(values[c]) - zero) * ratio;
    to[c] = rounding(value / by);
  }
}

template <typename Number, typename T>
ARENITE_LANE void add_all(const T* HWY_RESTRICT from, std::size_t count,
                          Number* HWY_RESTRICT sums) {
  for (std::size_t c = 0; c < count; ++c) { sums[c] = static_cast<Number>(sums[c] + from[c]); }
}

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
template <typename T>
ARENITE_LANE void find_largest(const Row<T>& row, const WindowSpan& columns, T* largest) {
  constexpr std::size_t kTogether = 64;
  for (std::size_t channel = 0; channel < row.source.channels; channel += kTogether) {
    const std::size_t count = std::min(kTogether, row.source.channels - channel);
    T found[kTogether];
    std::fill_n(found, count, std::numeric_limits<T>::min());
    row.each_tap(columns, channel, [&](const T* from) {
      for (std::size_t c = 0; c < count; ++c) { found[c] = std::max(found[c], from[c]); }
    });
    for (std::size_t c = 0; c < count; ++c) {
      largest[channel + c] = std::min(std::max(found[c], row.min), row.max);
    }
  }
}

template <typename T>
bool share_columns(const Row<T>&) {
  return false;
}
#else
namespace hn = hwy::HWY_NAMESPACE;

template <typename Tag, typename T>
ARENITE_LANE void find_some(Tag tag, const Row<T>& row, const WindowSpan& columns,
                            std::size_t channel, T* largest) {
  auto found = hn::Set(tag, std::numeric_limits<T>::min());
  row.each_tap(columns, channel,
               [&](const T* from) HWY_ATTR { found = hn::Max(found, hn::LoadU(tag, from)); });
  hn::StoreU(hn::Min(hn::Max(found, hn::Set(tag, row.min)), hn::Set(tag, row.max)), tag,
             largest + channel);
}

// Of channels that fill no vector, the last ones are found twice.
template <typename T>
ARENITE_LANE void find_largest(const Row<T>& row, const WindowSpan& columns, T* largest) {
  const hn::ScalableTag<T> wide;
  const hn::CappedTag<T, 16> narrow;
  constexpr std::size_t kWide = sizeof(hn::Vec<hn::ScalableTag<T> >);
  constexpr std::size_t kNarrow = sizeof(hn::Vec<hn::CappedTag<T, 16> >);
  const std::size_t channels = row.source.channels;
  std::size_t channel = 0;
  for (; channel + kWide <= channels; channel += kWide) {
    find_some(wide, row, columns, channel, largest);
  }
  for (; channel + kNarrow <= channels; channel += kNarrow) {
    find_some(narrow, row, columns, channel, largest);
  }
  if (channel < channels && channels >= kNarrow) {
    find_some(narrow, row, columns, channels - kNarrow, largest);
    return;
  }
  for (; channel < channels; ++channel) {
    T found = std::numeric_limits<T>::min();
    row.each_tap(columns, channel, [&](const T* from) HWY_ATTR { found = std::max(found, *from); });
    largest[channel] = std::min(std::max(found, row.min), row.max);
  }
}

// How a sum becomes an average. A product replaces a quotient where it is the same, or where that
// is rounded to the nearest integer and no whole number over the divisor is near a half.
struct Scaling {
  Scaling(const Int8Pool& pool, std::size_t divisor)
      : is_product((divisor & (divisor - 1)) == 0 || (pool.ratio == 1.0f && divisor % 2 == 1)),
        factor(is_product ? pool.ratio * (1.0f / static_cast<float>(divisor)) : pool.ratio),
        divisor(static_cast<float>(divisor)) {}

  bool is_product;
  float factor;
  float divisor;
};

// Averages of some channels, as many as some vectors of 16-bit sums.
template <typename T, typename Tag, std::size_t Vectors>
class Channels {
  using Sums = hn::Vec<Tag>;
  using Half = hn::Half<Tag>;
  static constexpr std::size_t kLanes = sizeof(Sums) / sizeof(std::int16_t);

 public:
  static constexpr std::size_t kCount = Vectors * kLanes;

  // Each column is added up once, joins the sum with the first window that has it, and leaves it
  // after the last one.
  static ARENITE_LANE void make(const Row<T>& given, const T* const* taps, std::size_t channel) {
    HWY_ALIGN std::int16_t kept[kMostTaps * kCount];
    const Tag tag;
    const hn::Rebind<T, Tag> bytes;
    // Copies: bytes that are written may alias the originals.
    const Int8Pool pool = given.pool;
    const WindowSpan rows = given.rows;
    const std::size_t num_taps = rows.inside();
    const T* sources[kMostTaps];
    std::copy_n(taps, num_taps, sources);
    const std::size_t stride = given.source.pixel_stride;
    const std::size_t length = given.source.columns;
    const std::size_t num_columns = given.result.columns;
    const std::size_t step_to = given.result.pixel_stride;
    T* to = given.to + channel;
    Sums sum[Vectors];
    for (auto& each : sum) { each = hn::Zero(tag); }
    std::size_t begin = 0;
    std::size_t end = 0;
    for (std::size_t column = 0; column < num_columns; ++column) {
      const WindowSpan span = window_span(pool.window, 1, column, length);
      const std::size_t inside = span.inside();
      const auto first = inside == 0 ? end : static_cast<std::size_t>(span.start) + span.first;
      for (; begin < std::min(first, end); ++begin) {
        for (std::size_t v = 0; v < Vectors; ++v) {
          const auto* from = kept + begin % kMostTaps * kCount + v * kLanes;
          sum[v] = hn::Sub(sum[v], hn::Load(tag, from));
        }
      }
      begin = first;
      for (end = std::max(first, end); end < first + inside; ++end) {
        for (std::size_t v = 0; v < Vectors; ++v) {
          const std::size_t at = end * stride + channel + v * kLanes;
          Sums made = hn::Zero(tag);
          for (std::size_t i = 0; i < num_taps; ++i) {
            made = hn::Add(made, hn::PromoteTo(tag, hn::LoadU(bytes, sources[i] + at)));
          }
          hn::Store(made, tag, kept + end % kMostTaps * kCount + v * kLanes);
          sum[v] = hn::Add(sum[v], made);
        }
      }
      const Scaling scaling(pool, divisor_of(pool, rows, span));
      const auto zeros = static_cast<std::int32_t>(num_taps * inside) * pool.source_zero_point;
      const Half half;
      for (std::size_t v = 0; v < Vectors; ++v) {
        store(hn::LowerHalf(half, sum[v]), zeros, scaling, pool, to + v * kLanes);
        store(hn::UpperHalf(half, sum[v]), zeros, scaling, pool, to + v * kLanes + kLanes / 2);
      }
      to += step_to;
    }
  }

 private:
  static ARENITE_LANE void store(hn::Vec<Half> sum, std::int32_t zeros, const Scaling& scaling,
                                 const Int8Pool& pool, T* to) {
    // As Rounding, with the integer taken from the lowest bits.
    constexpr std::int32_t kRounderBits = 0x4b400000;
    const hn::Rebind<std::int32_t, Half> integers;
    const hn::RebindToFloat<decltype(integers)> floats;
    const hn::Rebind<T, decltype(integers)> bytes;
    const auto low = hn::Set(floats, static_cast<float>(pool.min - pool.zero_point));
    const auto high = hn::Set(floats, static_cast<float>(pool.max - pool.zero_point));
    auto value =
        hn::ConvertTo(floats, hn::Sub(hn::PromoteTo(integers, sum), hn::Set(integers, zeros)));
    value = hn::Mul(value, hn::Set(floats, scaling.factor));
    if (!scaling.is_product) { value = hn::Div(value, hn::Set(floats, scaling.divisor)); }
    const auto kept = hn::Min(hn::Max(value, low), high);
    const auto rounded = hn::BitCast(integers, hn::Add(kept, hn::Set(floats, kRounder)));
    const auto made = hn::Sub(rounded, hn::Set(integers, kRounderBits - pool.zero_point));
    hn::StoreU(hn::DemoteTo(bytes, made), bytes, to);
  }
};

// Makes a row of averages and returns true; returns false for windows of many taps or with gaps,
// and for few channels. Of channels that fill no vector, the last ones are made twice.
template <typename T>
bool share_columns(const Row<T>& row) {
  using Wide = Channels<T, hn::ScalableTag<std::int16_t>, 2>;
  using Narrow = Channels<T, hn::CappedTag<std::int16_t, 8>, 1>;
  const auto& window = row.pool.window;
  const std::size_t channels = row.source.channels;
  const std::size_t num_taps = row.rows.inside();
  if (channels < Narrow::kCount || window.dilations[1] != 1 || window.kernel[1] > kMostTaps ||
      num_taps > kMostTaps || num_taps * window.kernel[1] > kFew ||
      !std::isfinite(row.pool.ratio)) {
    return false;
  }
  const T* taps[kMostTaps];
  for (std::size_t i = 0; i < num_taps; ++i) {
    const auto y =
        row.rows.start + static_cast<std::int64_t>(row.rows.first + i) * window.dilations[0];
    taps[i] = row.source.row(static_cast<std::size_t>(y));
  }
  std::size_t channel = 0;
  for (; channel + Wide::kCount <= channels; channel += Wide::kCount) {
    Wide::make(row, taps, channel);
  }
  for (; channel + Narrow::kCount <= channels; channel += Narrow::kCount) {
    Narrow::make(row, taps, channel);
  }
  if (channel < channels) { Narrow::make(row, taps, channels - Narrow::kCount); }
  return true;
}
#endif

template <typename Number, typename T>
ARENITE_LANE void make_average(const Row<T>& row, const WindowSpan& columns, T* to) {
  const std::size_t taps = row.rows.inside() * columns.inside();
  for (std::size_t channel = 0; channel < row.result.channels; channel += kBlock) {
    const std::size_t count = std::min(kBlock, row.result.channels - channel);
    Number sums[kBlock];
    std::fill_n(sums, count, Number{0});
    row.each_tap(columns, channel, [&](const T* from) HWY_ATTR { add_all(from, count, sums); });
    store_all(row.pool, sums, count, taps, divisor_of(row.pool, row.rows, columns), to + channel);
  }
}

// A maximum with another scale than the source's.
template <typename T>
ARENITE_LANE void rescale(const Row<T>& row, const WindowSpan& columns, T* pixel) {
  if (row.rows.inside() * columns.inside() == 0) {
    std::fill_n(pixel, row.result.channels, static_cast<T>(row.pool.min));
    return;
  }
  for (std::size_t channel = 0; channel < row.result.channels; channel += kBlock) {
    const std::size_t count = std::min(kBlock, row.result.channels - channel);
    T found[kBlock];
    std::copy_n(pixel + channel, count, found);
    store_all(row.pool, found, count, 1, 1, pixel + channel);
  }
}

template <typename T>
ARENITE_LANE void make_row(const Int8Pool& pool, const Image<const T>& source,
                           const Image<T>& result, std::size_t index) {
  const bool is_kept = pool.ratio == 1.0f && pool.source_zero_point == pool.zero_point;
  const Row<T> row{pool,
                   source,
                   result,
                   window_span(pool.window, 0, index, source.rows),
                   result.row(index),
                   is_kept ? static_cast<T>(pool.min) : std::numeric_limits<T>::min(),
                   is_kept ? static_cast<T>(pool.max) : std::numeric_limits<T>::max()};
  if (pool.is_average && share_columns(row)) { return; }
  for (std::size_t column = 0; column < result.columns; ++column) {
    const WindowSpan columns = row.columns(column);
    T* to = row.to + column * result.pixel_stride;
    if (!pool.is_average) {
      find_largest(row, columns, to);
      if (!is_kept) { rescale(row, columns, to); }
    } else if (row.rows.inside() * columns.inside() <= kFew) {
      make_average<std::int16_t>(row, columns, to);
    } else {
      make_average<std::int32_t>(row, columns, to);
    }
  }
}

// Adds some rows of the source to the sums of an average with one row.
template <typename T>
ARENITE_LANE void take(const Int8Pool& pool, const Image<const T>& source, const Image<T>& result,
                       RowRange taken, std::int32_t* sums) {
  const WindowSpan rows = window_span(pool.window, 0, 0, source.rows);
  const std::size_t end = taken.first + taken.count;
  if (taken.first == 0) { std::fill_n(sums, result.columns * result.channels, 0); }
  for (std::size_t column = 0; column < result.columns; ++column) {
    std::int32_t* pixel = sums + column * result.channels;
    const WindowSpan columns = window_span(pool.window, 1, column, source.columns);
    for (std::size_t i = rows.first; i < rows.last; ++i) {
      const auto y = static_cast<std::size_t>(rows.start + static_cast<std::int64_t>(i) *
                                                               pool.window.dilations[0]);
      if (y >= taken.first && y < end) {
        const Row<T> row{pool, source, result, {rows.start, i, i + 1, 0}, nullptr, 0, 0};
        row.each_tap(columns, 0,
                     [&](const T* from) HWY_ATTR { add_all(from, result.channels, pixel); });
      }
    }
    if (end == source.rows) {
      store_all(pool, pixel, result.channels, rows.inside() * columns.inside(),
                divisor_of(pool, rows, columns), result.row(0) + column * result.pixel_stride);
    }
  }
}

}  // namespace

void pool_row(const Int8Pool& pool, const Image<const std::int8_t>& source,
              const Image<std::int8_t>& result, std::size_t row) {
  make_row(pool, source, result, row);
}
void pool_row_unsigned(const Int8Pool& pool, const Image<const std::uint8_t>& source,
                       const Image<std::uint8_t>& result, std::size_t row) {
  make_row(pool, source, result, row);
}
void take_some(const Int8Pool& pool, const Image<const std::int8_t>& source,
               const Image<std::int8_t>& result, RowRange rows, std::int32_t* sums) {
  take(pool, source, result, rows, sums);
}
void take_some_unsigned(const Int8Pool& pool, const Image<const std::uint8_t>& source,
                        const Image<std::uint8_t>& result, RowRange rows, std::int32_t* sums) {
  take(pool, source, result, rows, sums);
}

}  // namespace HWY_NAMESPACE
}  // namespace arenite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace arenite {

namespace {

template <typename T>
void pool_with(void (*make)(const Int8Pool&, const Image<const T>&, const Image<T>&, std::size_t),
               const Int8Pool& pool, const Image<const T>& source, const Image<T>& result,
               RowRange rows, pthreadpool_t threads) {
  const std::size_t cost =
      result.columns * result.channels * pool.window.kernel[0] * pool.window.kernel[1] / 4;
  parallel(threads, rows.count, cost, [&](std::size_t first, std::size_t count) {
    for (std::size_t row = first; row < first + count; ++row) {
      make(pool, source, result, rows.first + row);
    }
  });
}

}  // namespace

void pool(const Int8Pool& pool, const Image<const std::int8_t>& source,
          const Image<std::int8_t>& result, RowRange rows, pthreadpool_t threads) {
  pool_with(ARENITE_COPY(pool_row), pool, source, result, rows, threads);
}

void pool(const Int8Pool& pool, const Image<const std::uint8_t>& source,
          const Image<std::uint8_t>& result, RowRange rows, pthreadpool_t threads) {
  pool_with(ARENITE_COPY(pool_row_unsigned), pool, source, result, rows, threads);
}

void take_rows(const Int8Pool& pool, const Image<const std::int8_t>& source,
               const Image<std::int8_t>& result, RowRange rows, std::int32_t* sums) {
  ARENITE_COPY(take_some)(pool, source, result, rows, sums);
}

void take_rows(const Int8Pool& pool, const Image<const std::uint8_t>& source,
               const Image<std::uint8_t>& result, RowRange rows, std::int32_t* sums) {
  ARENITE_COPY(take_some_unsigned)(pool, source, result, rows, sums);
}

}  // namespace arenite
#endif
