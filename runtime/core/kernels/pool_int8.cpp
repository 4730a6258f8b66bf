#include "pool_int8.hpp"

#include <algorithm>
#include <limits>

#include "kernels/average_int8.hpp"
#include "kernels/largest_int8.hpp"
#include "kernels/parallel.hpp"
#include "kernels/processor.hpp"
#include "kernels/window_span.hpp"

namespace arenite {

namespace {

// Channels that a pixel is made of at once.
constexpr std::size_t kBlock = 128;
// Elements whose sum fits 16 bits.
constexpr std::size_t kFew = 128;

template <typename Number, typename T>
ARENITE_INLINE void add_all(const T* __restrict from, std::size_t count, Number* __restrict sums) {
  for (std::size_t c = 0; c < count; ++c) {
    sums[c] = static_cast<Number>(sums[c] + from[c]);
  }
}

template <typename T>
struct Work {
  const Int8Pool& pool;
  const Image<const T>& source;
  const Image<T>& result;
  FindLargest<T> largest;
  FindAverages<T> averages;

  ARENITE_INLINE WindowSpan span(std::size_t place, std::size_t axis) const {
    return window_span(pool.window, axis, place, axis == 0 ? source.rows : source.columns);
  }

  // Calls visit(elements) for each tap inside, from a channel on.
  template <typename Visit>
  ARENITE_INLINE void each_tap(const WindowSpan& rows, const WindowSpan& columns,
                               std::size_t channel, const Visit& visit) const {
    const auto& dilations = pool.window.dilations;
    for (std::size_t i = rows.first; i < rows.last; ++i) {
      const auto y =
          static_cast<std::size_t>(rows.start + static_cast<std::int64_t>(i) * dilations[0]);
      const T* row = source.row(y) + channel;
      for (std::size_t j = columns.first; j < columns.last; ++j) {
        const auto x =
            static_cast<std::size_t>(columns.start + static_cast<std::int64_t>(j) * dilations[1]);
        visit(row + x * source.pixel_stride);
      }
    }
  }

  template <typename Number>
  ARENITE_INLINE void store(const Number* __restrict values, std::size_t count, std::int32_t zero,
                            float divisor, T* __restrict to) const {
    // Adding and taking away this leaves the nearest integer, of two equally near the even one.
    constexpr float kRounder = 12'582'912.0f;
    const auto low = static_cast<float>(pool.min - pool.zero_point);
    const auto high = static_cast<float>(pool.max - pool.zero_point);
    const std::int32_t zero_point = pool.zero_point;
    const float ratio = pool.ratio;
    for (std::size_t c = 0; c < count; ++c) {
      const float value = static_cast<float>(static_cast<std::int32_t>(values[c]) - zero) * ratio;
      // NaN becomes the lowest: scales may lie that far apart.
      const float kept = std::min(std::max(low, value / divisor), high);
      to[c] = static_cast<T>(static_cast<std::int32_t>((kept + kRounder) - kRounder) + zero_point);
    }
  }

  template <typename Number>
  ARENITE_INLINE void average(const WindowSpan& rows, const WindowSpan& columns,
                              std::size_t channel, std::size_t count, T* to) const {
    const std::size_t inside = rows.inside() * columns.inside();
    Number sums[kBlock];
    std::fill_n(sums, count, Number{0});
    each_tap(rows, columns, channel,
             [&](const T* from) __attribute__((always_inline)) { add_all(from, count, sums); });
    store(sums, count, static_cast<std::int32_t>(inside) * pool.source_zero_point,
          static_cast<float>(average_divisor(pool, rows, columns)), to);
  }

  // Of an average with one row, that of the rows taken into sums.
  ARENITE_INLINE void take(RowRange taken, std::int32_t* sums) const {
    const WindowSpan rows = span(0, 0);
    const std::size_t end = taken.first + taken.count;
    if (taken.first == 0) {
      std::fill_n(sums, result.columns * result.channels, 0);
    }
    for (std::size_t column = 0; column < result.columns; ++column) {
      const WindowSpan columns = span(column, 1);
      std::int32_t* pixel = sums + column * result.channels;
      for (std::size_t i = rows.first; i < rows.last; ++i) {
        const auto y = static_cast<std::size_t>(rows.start + static_cast<std::int64_t>(i) *
                                                                 pool.window.dilations[0]);
        if (y < taken.first || y >= end) {
          continue;
        }
        const WindowSpan row{rows.start, i, i + 1, 0};
        each_tap(row, columns, 0, [&](const T* from) __attribute__((always_inline)) {
          add_all(from, result.channels, pixel);
        });
      }
      if (end == source.rows) {
        const std::size_t inside = rows.inside() * columns.inside();
        store(pixel, result.channels, static_cast<std::int32_t>(inside) * pool.source_zero_point,
              static_cast<float>(average_divisor(pool, rows, columns)),
              result.row(0) + column * result.pixel_stride);
      }
    }
  }

  ARENITE_INLINE void make_largest(const WindowSpan& rows, T* to) const {
    const bool is_kept = pool.ratio == 1.0f && pool.source_zero_point == pool.zero_point;
    largest({pool.window, source, rows, result.columns, result.pixel_stride,
             is_kept ? static_cast<T>(pool.min) : std::numeric_limits<T>::min(),
             is_kept ? static_cast<T>(pool.max) : std::numeric_limits<T>::max(), to});
    if (is_kept) {
      return;
    }
    for (std::size_t column = 0; column < result.columns; ++column) {
      T* pixel = to + column * result.pixel_stride;
      if (rows.inside() * span(column, 1).inside() == 0) {
        std::fill_n(pixel, result.channels, static_cast<T>(pool.min));
        continue;
      }
      for (std::size_t channel = 0; channel < result.channels; channel += kBlock) {
        const std::size_t count = std::min(kBlock, result.channels - channel);
        T found[kBlock];
        std::copy_n(pixel + channel, count, found);
        store(found, count, pool.source_zero_point, 1.0f, pixel + channel);
      }
    }
  }

  ARENITE_INLINE void make_row(std::size_t row) const {
    const WindowSpan rows = span(row, 0);
    if (!pool.is_average) {
      make_largest(rows, result.row(row));
      return;
    }
    if (averages({pool, source, rows, result.columns, result.pixel_stride, result.row(row)})) {
      return;
    }
    for (std::size_t column = 0; column < result.columns; ++column) {
      const WindowSpan columns = span(column, 1);
      T* to = result.row(row) + column * result.pixel_stride;
      for (std::size_t channel = 0; channel < result.channels; channel += kBlock) {
        const std::size_t count = std::min(kBlock, result.channels - channel);
        if (rows.inside() * columns.inside() <= kFew) {
          average<std::int16_t>(rows, columns, channel, count, to + channel);
        } else {
          average<std::int32_t>(rows, columns, channel, count, to + channel);
        }
      }
    }
  }
};

template <typename T>
void make_for_any(const Work<T>& work, std::size_t row) {
  work.make_row(row);
}

template <typename T>
ARENITE_FOR_AVX2 void make_for_avx2(const Work<T>& work, std::size_t row) {
  work.make_row(row);
}

template <typename T>
void pool_any(const Int8Pool& pool, const Image<const T>& source, const Image<T>& result,
              RowRange rows, pthreadpool_t threads) {
  const Work<T> work{pool, source, result, find_largest<T>(), find_averages<T>()};
  const auto make = vectors() == Vectors::any ? make_for_any<T> : make_for_avx2<T>;
  const std::size_t cost =
      result.columns * result.channels * pool.window.kernel[0] * pool.window.kernel[1] / 4;
  parallel(threads, rows.count, cost, [&](std::size_t first, std::size_t count) {
    for (std::size_t row = first; row < first + count; ++row) {
      make(work, rows.first + row);
    }
  });
}

template <typename T>
void take_for_any(const Work<T>& work, RowRange taken, std::int32_t* sums) {
  work.take(taken, sums);
}

template <typename T>
ARENITE_FOR_AVX2 void take_for_avx2(const Work<T>& work, RowRange taken, std::int32_t* sums) {
  work.take(taken, sums);
}

template <typename T>
void take_any(const Int8Pool& pool, const Image<const T>& source, const Image<T>& result,
              RowRange rows, std::int32_t* sums) {
  const auto take = vectors() == Vectors::any ? take_for_any<T> : take_for_avx2<T>;
  take({pool, source, result, nullptr, nullptr}, rows, sums);
}

}  // namespace

void take_rows(const Int8Pool& pool, const Image<const std::int8_t>& source,
               const Image<std::int8_t>& result, RowRange rows, std::int32_t* sums) {
  take_any(pool, source, result, rows, sums);
}

void take_rows(const Int8Pool& pool, const Image<const std::uint8_t>& source,
               const Image<std::uint8_t>& result, RowRange rows, std::int32_t* sums) {
  take_any(pool, source, result, rows, sums);
}

void pool(const Int8Pool& pool, const Image<const std::int8_t>& source,
          const Image<std::int8_t>& result, RowRange rows, pthreadpool_t threads) {
  pool_any(pool, source, result, rows, threads);
}

void pool(const Int8Pool& pool, const Image<const std::uint8_t>& source,
          const Image<std::uint8_t>& result, RowRange rows, pthreadpool_t threads) {
  pool_any(pool, source, result, rows, threads);
}

}  // namespace arenite
