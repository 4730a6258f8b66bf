#include "kernels/highway_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pool.cpp"
#include "hwy/foreach_target.h"
// After them: compiled for each kind of processor.
#include <algorithm>
#include <limits>

#include "kernels/lanes.hpp"
#include "kernels/parallel.hpp"
#include "kernels/pool.hpp"
#include "kernels/sliding_window.hpp"

HWY_BEFORE_NAMESPACE();
namespace arenite {
namespace HWY_NAMESPACE {
namespace {

// Work on rows [first, end) of a source, which continues the sums of the rows before.
struct Work {
  const Pool& pool;
  const Image<const float>& source;
  const Image<float>& result;
  std::size_t first;
  std::size_t end;
  float* sums;  // of an average whose rows come in parts; null: they come at once
};

// A pixel of the result: its taps, and what its sum is multiplied by.
struct Pixel {
  WindowSpan rows;
  WindowSpan columns;
  float factor;
  float* target;
  float* sums;
};

// All lanes of so many vectors, or the first few of one.
template <std::size_t Parts>
struct WholeLanes {
  static constexpr std::size_t kParts = Parts;

  ARENITE_LANE Lanes values(const float* from, std::size_t part) const {
    return load(from + part * kLanes);
  }
  ARENITE_LANE void keep(Lanes value, float* to, std::size_t part) const {
    store(value, to + part * kLanes);
  }
};

struct SomeLanes {
  static constexpr std::size_t kParts = 1;
  std::size_t count;

  ARENITE_LANE Lanes values(const float* from, std::size_t) const { return load_some(from, count); }
  ARENITE_LANE void keep(Lanes value, float* to, std::size_t) const {
    store_some(value, to, count);
  }
};

template <bool kIsAverage, typename Channels>
ARENITE_LANE void make_channels(const Work& work, const Pixel& pixel, std::size_t channel,
                                const Channels& channels) {
  constexpr std::size_t kParts = Channels::kParts;
  const auto& dilations = work.pool.window.dilations;
  const Lanes start = all_lanes(kIsAverage ? 0.0f : -std::numeric_limits<float>::infinity());
  const bool continues = kIsAverage && pixel.sums != nullptr && work.first > 0;
  Lanes found[kParts];
#pragma GCC unroll 4
  for (std::size_t part = 0; part < kParts; ++part) {
    found[part] = continues ? channels.values(pixel.sums + channel, part) : start;
  }
  const std::int64_t left =
      pixel.columns.start + static_cast<std::int64_t>(pixel.columns.first) * dilations[1];
  const std::size_t step = dilations[1] * work.source.pixel_stride;
  for (std::size_t i = pixel.rows.first; i < pixel.rows.last; ++i) {
    const auto y =
        static_cast<std::size_t>(pixel.rows.start + static_cast<std::int64_t>(i) * dilations[0]);
    if (y < work.first || y >= work.end) { continue; }
    const float* from =
        work.source.row(y) + channel +
        static_cast<std::size_t>(std::max<std::int64_t>(left, 0)) * work.source.pixel_stride;
    for (std::size_t j = pixel.columns.first; j < pixel.columns.last; ++j) {
#pragma GCC unroll 4
      for (std::size_t part = 0; part < kParts; ++part) {
        const Lanes value = channels.values(from, part);
        found[part] = kIsAverage ? add(found[part], value) : larger(found[part], value);
      }
      from += step;
    }
  }
  if (pixel.sums != nullptr && work.end < work.source.rows) {
#pragma GCC unroll 4
    for (std::size_t part = 0; part < kParts; ++part) {
      channels.keep(found[part], pixel.sums + channel, part);
    }
    return;
  }
  const Lanes min = all_lanes(work.pool.min);
  const Lanes max = all_lanes(work.pool.max);
  const Lanes factor = all_lanes(pixel.factor);
#pragma GCC unroll 4
  for (std::size_t part = 0; part < kParts; ++part) {
    const Lanes value = kIsAverage ? multiply(found[part], factor) : found[part];
    channels.keep(clamp(value, min, max), pixel.target + channel, part);
  }
}

template <bool kIsAverage>
ARENITE_LANE void make_row_of(const Work& work, std::size_t row) {
  const auto& pool = work.pool;
  const WindowSpan rows = window_span(pool.window, 0, row, work.source.rows);
  const std::size_t num_channels = work.result.channels;
  float* target = work.result.row(row);
  for (std::size_t column = 0; column < work.result.columns; ++column) {
    const WindowSpan columns = window_span(pool.window, 1, column, work.source.columns);
    const std::size_t inside = rows.inside() * columns.inside();
    const std::size_t count = pool.is_sum           ? 1
                              : pool.counts_padding ? rows.padded * columns.padded
                                                    : std::max<std::size_t>(inside, 1);
    const Pixel pixel{rows, columns, 1.0f / static_cast<float>(count),
                      target + column * work.result.pixel_stride,
                      work.sums == nullptr ? nullptr : work.sums + column * num_channels};
    std::size_t channel = 0;
    for (; channel + 4 * kLanes <= num_channels; channel += 4 * kLanes) {
      make_channels<kIsAverage>(work, pixel, channel, WholeLanes<4>{});
    }
    for (; channel + 2 * kLanes <= num_channels; channel += 2 * kLanes) {
      make_channels<kIsAverage>(work, pixel, channel, WholeLanes<2>{});
    }
    for (; channel + kLanes <= num_channels; channel += kLanes) {
      make_channels<kIsAverage>(work, pixel, channel, WholeLanes<1>{});
    }
    if (channel < num_channels) {
      make_channels<kIsAverage>(work, pixel, channel, SomeLanes{num_channels - channel});
    }
  }
}

void make_row(const Work& work, std::size_t row) {
  if (work.pool.is_average) {
    make_row_of<true>(work, row);
  } else {
    make_row_of<false>(work, row);
  }
}

}  // namespace

void pool_row(const Pool& pool, const Image<const float>& source, const Image<float>& result,
              RowRange taken, float* sums, std::size_t row) {
  make_row({pool, source, result, taken.first, taken.first + taken.count, sums}, row);
}

}  // namespace HWY_NAMESPACE
}  // namespace arenite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace arenite {

void pool(const Pool& pool, const Image<const float>& source, const Image<float>& result,
          RowRange rows, pthreadpool_t threads) {
  const auto make = ARENITE_COPY(pool_row);
  const std::size_t cost =
      result.columns * result.channels * pool.window.kernel[0] * pool.window.kernel[1];
  parallel(threads, rows.count, cost, [&](std::size_t first, std::size_t count) {
    for (std::size_t row = first; row < first + count; ++row) {
      make(pool, source, result, {0, source.rows}, nullptr, rows.first + row);
    }
  });
}

void take_rows(const Pool& pool, const Image<const float>& source, const Image<float>& result,
               RowRange rows, float* sums) {
  ARENITE_COPY(pool_row)(pool, source, result, rows, sums, 0);
}

}  // namespace arenite
#endif
