#include "kernels/convolution/windows.hpp"

#include <algorithm>
#include <cstring>

namespace arenite {

namespace {

constexpr std::size_t kFew = 64;

// A call would cost more than to copy a few.
inline void copy_floats(const float* from, std::size_t count, float* to) {
  constexpr std::size_t kAtOnce = 4;
  if (count >= kFew) {
    std::memcpy(to, from, count * sizeof(float));
  } else if (count >= kAtOnce) {
    for (std::size_t i = 0; i + kAtOnce < count; i += kAtOnce) {
      std::memcpy(to + i, from + i, kAtOnce * sizeof(float));
    }
    // The last may overlap those before.
    std::memcpy(to + count - kAtOnce, from + count - kAtOnce, kAtOnce * sizeof(float));
  } else {
    for (std::size_t i = 0; i < count; ++i) {
      to[i] = from[i];
    }
  }
}

}  // namespace

Windows::Windows(const SlidingWindow& window, const Image<const float>& source,
                 std::size_t channels, std::size_t first_row, std::size_t columns)
    : source_(source),
      columns_(columns),
      first_row_(first_row),
      top_(window.padding[0]),
      left_(window.padding[3]),
      row_step_(window.strides[0]),
      column_step_(window.strides[1]),
      row_dilation_(window.dilations[0]),
      column_dilation_(window.dilations[1]),
      channels_(channels),
      row_depth_(window.kernel[1] * channels),
      is_contiguous_(source.pixel_stride == channels &&
                     (column_dilation_ == 1 || window.kernel[1] == 1)) {}

void Windows::copy(std::size_t pixel, std::size_t num_pixels, std::size_t channel,
                   std::size_t depth, std::size_t num_depth, float* copies,
                   std::size_t stride) const {
  const std::size_t end = depth + num_depth;
  std::size_t result_row = pixel / columns_;
  std::size_t result_column = pixel % columns_;
  while (num_pixels > 0) {
    const std::size_t run = std::min(num_pixels, columns_ - result_column);
    const std::int64_t top = static_cast<std::int64_t>(first_row_ + result_row) * row_step_ - top_;
    std::size_t tap = depth / row_depth_;
    std::size_t first = depth % row_depth_;
    float* to = copies;
    for (std::size_t done = depth; done < end; ++tap) {
      const std::size_t size = std::min(row_depth_ - first, end - done);
      const std::int64_t row = top + static_cast<std::int64_t>(tap) * row_dilation_;
      if (row < 0 || row >= static_cast<std::int64_t>(source_.rows)) {
        for (std::size_t i = 0; i < run; ++i) {
          std::memset(to + i * stride, 0, size * sizeof(float));
        }
      } else {
        const float* const from = source_.row(static_cast<std::size_t>(row)) + channel;
        const std::size_t piece = is_contiguous_ ? 0 : first / channels_;
        const Part part{piece, first - piece * channels_, size};
        std::int64_t left = static_cast<std::int64_t>(result_column) * column_step_ - left_;
        for (std::size_t i = 0; i < run; ++i) {
          copy_row(from, left, part, to + i * stride);
          left += column_step_;
        }
      }
      to += size;
      done += size;
      first = 0;
    }
    copies += run * stride;
    num_pixels -= run;
    result_column = 0;
    ++result_row;
  }
}

inline void Windows::copy_row(const float* row, std::int64_t column, Part part, float* copy) const {
  const auto channels = static_cast<std::int64_t>(channels_);
  const auto columns = static_cast<std::int64_t>(source_.columns);
  if (is_contiguous_) {
    const std::int64_t begin = column * channels + static_cast<std::int64_t>(part.offset);
    const std::int64_t end = begin + static_cast<std::int64_t>(part.size);
    const std::int64_t limit = columns * channels;
    if (begin >= 0 && end <= limit) {
      copy_floats(row + begin, part.size, copy);
      return;
    }
    for (std::int64_t i = begin; i < end; ++i) {
      *copy++ = i >= 0 && i < limit ? row[i] : 0.0f;
    }
    return;
  }
  column += static_cast<std::int64_t>(part.piece) * column_dilation_;
  while (part.size > 0) {
    const std::size_t size = std::min(channels_ - part.offset, part.size);
    if (column >= 0 && column < columns) {
      copy_floats(row + static_cast<std::size_t>(column) * source_.pixel_stride + part.offset, size,
                  copy);
    } else {
      std::memset(copy, 0, size * sizeof(float));
    }
    copy += size;
    part = {0, 0, part.size - size};
    column += column_dilation_;
  }
}

}  // namespace arenite
