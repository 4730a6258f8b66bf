#include "kernels/convolution/windows.hpp"

#include <algorithm>

namespace arenite {

namespace {

std::int64_t to_signed(std::size_t value) { return static_cast<std::int64_t>(value); }

void fill_zeros(std::size_t count, std::size_t size, float* copies) {
  for (std::size_t i = 0; i < count; ++i) { std::fill_n(copies + i * kTileStride, size, 0.0f); }
}

}  // namespace

Windows::Windows(const SlidingWindow& window, const Image<const float>& source,
                 std::size_t channels, std::size_t columns)
    : window_(window),
      source_(source),
      kernels_(tile_kernels()),
      columns_(columns),
      column_step_(window.strides[1]),
      channels_(channels),
      row_depth_(window.kernel[1] * channels),
      is_contiguous_(source.pixel_stride == channels &&
                     (window.dilations[1] == 1 || window.kernel[1] == 1)) {}

bool Windows::find_rows(std::size_t result_row, std::size_t channel, std::size_t first,
                        std::size_t count, const float** rows) const {
  for (std::size_t i = 0; i < count; ++i) {
    const float* const row = row_under(window_, source_, result_row, first + i);
    if (row == nullptr) { return false; }
    rows[i] = row + channel;
  }
  return true;
}

void Windows::find_runs(std::size_t result_row, std::size_t column, std::size_t num_pixels,
                        std::size_t channel, std::size_t first, std::size_t count, float* copies,
                        const float** runs, std::size_t* held) const {
  const std::int64_t stride = to_signed(source_.pixel_stride);
  const std::int64_t limit = to_signed(source_.columns - 1) * stride + to_signed(source_.channels);
  const std::size_t size = span(num_pixels);
  const std::int64_t begin = window_.place(1, column) * stride + to_signed(channel);
  // Of the span those floats that the row has.
  const std::int64_t left = std::clamp<std::int64_t>(begin, 0, limit);
  const std::int64_t right = std::clamp<std::int64_t>(begin + to_signed(size), 0, limit);
  for (std::size_t i = 0; i < count; ++i) {
    const float* const row = row_under(window_, source_, result_row, first + i);
    if (row != nullptr && right - left == to_signed(size)) {
      runs[i] = row + begin;
      continue;
    }
    std::size_t slot = i;
    if (held != nullptr) {
      const std::size_t place = result_row * window_.strides[0] + i * window_.dilations[0] + 1;
      slot = place / window_.dilations[0] % count;
      runs[i] = copies + slot * size;
      if (held[slot] == place) { continue; }
      held[slot] = place;
    }
    float* const copy = copies + slot * size;
    runs[i] = copy;
    if (row == nullptr) {
      std::fill_n(copy, size, 0.0f);
    } else {
      float* const to = std::fill_n(copy, std::min(left - begin, to_signed(size)), 0.0f);
      std::fill(std::copy(row + left, row + right, to), copy + size, 0.0f);
    }
  }
}

void Windows::copy(std::size_t result_row, std::size_t column, std::size_t num_pixels,
                   std::size_t channel, std::size_t depth, std::size_t num_depth,
                   float* copies) const {
  const std::size_t end = depth + num_depth;
  result_row += column / columns_;
  std::size_t result_column = column % columns_;
  while (num_pixels > 0) {
    const std::size_t run = std::min(num_pixels, columns_ - result_column);
    std::size_t tap = depth / row_depth_;
    std::size_t offset = depth % row_depth_;
    for (std::size_t done = depth; done < end; ++tap) {
      const std::size_t size = std::min(row_depth_ - offset, end - done);
      const float* const row = row_under(window_, source_, result_row, tap);
      float* const to = copies + (done - depth);
      if (row == nullptr) {
        fill_zeros(run, size, to);
      } else {
        copy_row(row + channel, result_column, run, offset, size, to);
      }
      done += size;
      offset = 0;
    }
    copies += run * kTileStride;
    num_pixels -= run;
    result_column = 0;
    ++result_row;
  }
}

void Windows::copy_row(const float* row, std::size_t result_column, std::size_t num_pixels,
                       std::size_t offset, std::size_t size, float* copies) const {
  const std::int64_t left = window_.place(1, result_column);
  if (is_contiguous_) {
    copy_piece(row, {left, offset, size, num_pixels}, copies);
    return;
  }
  std::size_t tap = offset / channels_;
  offset -= tap * channels_;
  for (std::size_t done = 0; done < size; ++tap) {
    const std::size_t count = std::min(channels_ - offset, size - done);
    copy_piece(
        row,
        {left + to_signed(tap) * std::int64_t{window_.dilations[1]}, offset, count, num_pixels},
        copies + done);
    done += count;
    offset = 0;
  }
}

void Windows::copy_piece(const float* row, const Piece& piece, float* copies) const {
  // Where the piece for each pixel begins in the row, were it without end on both sides.
  const std::int64_t stride = to_signed(source_.pixel_stride);
  const std::int64_t step = column_step_ * stride;
  const std::int64_t first = piece.column * stride + to_signed(piece.offset);
  const std::int64_t size = to_signed(piece.size);
  const std::int64_t limit = to_signed(source_.columns) * stride;
  const auto is_inside = [&](std::size_t pixel) {
    const std::int64_t begin = first + to_signed(pixel) * step;
    return begin >= 0 && begin + size <= limit;
  };
  std::size_t pixel = 0;
  if (is_inside(0) && is_inside(piece.num_pixels - 1)) {
    kernels_.copy(row + first, static_cast<std::size_t>(step), piece.num_pixels, piece.size,
                  copies);
    return;
  }
  while (pixel < piece.num_pixels) {
    std::size_t end = pixel;
    while (end < piece.num_pixels && is_inside(end)) { ++end; }
    if (end > pixel) {
      kernels_.copy(row + (first + to_signed(pixel) * step), static_cast<std::size_t>(step),
                    end - pixel, piece.size, copies + pixel * kTileStride);
    }
    for (pixel = end; pixel < piece.num_pixels && !is_inside(pixel); ++pixel) {
      const std::int64_t begin = first + to_signed(pixel) * step;
      float* const to = copies + pixel * kTileStride;
      for (std::int64_t i = 0; i < size; ++i) {
        to[i] = begin + i >= 0 && begin + i < limit ? row[begin + i] : 0.0f;
      }
    }
  }
}

}  // namespace arenite
