// How convolutions of packed filters go over images: pixels as one row, and parts for threads.
#pragma once

#include <pthreadpool.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/image.hpp"

namespace arenite {

// Whether the pixels of an image are as far apart across its rows as within.
template <typename T>
bool is_dense(const Image<T>& image) {
  return image.row_offsets == nullptr && image.row_stride == image.columns * image.pixel_stride;
}

// As one row of pixels.
template <typename T>
Image<T> flattened(const Image<T>& image, RowRange rows) {
  return {image.row(rows.first),      1,
          rows.count * image.columns, image.channels,
          image.pixel_stride,         rows.count * image.row_stride};
}

// How many rows, from one on, have pixels as far apart across rows as within: `most` at most.
template <typename T>
std::size_t rows_together(const Image<T>& image, std::size_t first, std::size_t most) {
  if (is_dense(image)) { return most; }
  if (image.row_offsets == nullptr) { return 1; }
  const std::uint64_t row_bytes = image.columns * image.pixel_stride * sizeof(T);
  std::size_t count = 1;
  while (count < most &&
         image.row_offsets[first + count] == image.row_offsets[first + count - 1] + row_bytes) {
    ++count;
  }
  return count;
}

// Calls compute(convolution, source, result, rows). Where each pixel of the result is made from one
// pixel, the pixels of rows that follow one another become one row, if they are many.
template <typename Convolution, typename Source, typename Result, typename Compute>
void over_pixels(const Convolution& convolution, const Image<const Source>& source,
                 const Image<Result>& result, RowRange rows, const Compute& compute) {
  if (rows.count * result.columns == 0) { return; }
  constexpr std::size_t kFewPixels = 8;
  const auto& window = convolution.window;
  const auto* addend = convolution.store.addend;
  const bool is_pointwise = window.is_pointwise();
  const std::size_t end = rows.first + rows.count;
  while (is_pointwise && rows.first < end) {
    std::size_t count = rows_together(source, rows.first, end - rows.first);
    count = rows_together(result, rows.first, count);
    if (addend != nullptr) { count = rows_together(*addend, rows.first, count); }
    if (count < end - rows.first && count * result.columns < kFewPixels) { break; }
    Convolution flat = convolution;
    std::remove_const_t<std::remove_pointer_t<decltype(addend)>> flat_addend;
    const RowRange together{rows.first, count};
    if (addend != nullptr) {
      flat_addend = flattened(*addend, together);
      flat.store.addend = &flat_addend;
    }
    compute(flat, flattened(source, together), flattened(result, together), RowRange{0, 1});
    rows.first += count;
  }
  rows.count = end - rows.first;
  if (rows.count > 0) { compute(convolution, source, result, rows); }
}

// Parts for each thread: one that is held up leaves some to the others.
constexpr std::size_t kPartsPerThread = 4;

struct Range {
  std::size_t first;
  std::size_t count;
};

// `part` of `count` things that are split as evenly as can be.
inline Range split(std::size_t count, std::size_t parts, std::size_t part) {
  const std::size_t first = count * part / parts;
  return {first, count * (part + 1) / parts - first};
}

// The threads that so many products are worth waking.
inline std::size_t threads_worthwhile(std::size_t products, pthreadpool_t threads) {
  constexpr std::size_t kWorthwhile = std::size_t{1} << 18;
  return products >= kWorthwhile ? pthreadpool_get_threads_count(threads) : 1;
}

// Runs all parts of work that was divided for so many threads.
template <typename Run>
void run_parts(const Run& run, std::size_t num_threads, pthreadpool_t threads) {
  if (num_threads == 1) {
    for (std::size_t part = 0; part < run.num_parts(); ++part) { run.run(part); }
    return;
  }
  pthreadpool_parallelize_1d(
      threads, [](void* context, std::size_t part) { static_cast<const Run*>(context)->run(part); },
      const_cast<Run*>(&run), run.num_parts(), 0);
}

}  // namespace arenite
