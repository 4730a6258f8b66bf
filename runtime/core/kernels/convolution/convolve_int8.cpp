#include "convolve_int8.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "kernels/convolution/convolve_int8_rows.hpp"
#include "kernels/convolution/int8_tile.hpp"
#include "kernels/parallel.hpp"
#include "kernels/processor.hpp"

namespace arenite {

namespace {

using Form = Int8TileKernel::Form;

// Bytes of weights that stay in the second cache while all tiles of the source pass.
constexpr std::size_t kCachedWeights = std::size_t{448} * 1024;

struct alignas(64) Stack {
  std::byte slab[kInt8SlabBytes];
  std::int32_t sums[kInt8TilePixels * kInt8SumStride];
  std::int32_t start[kInt8Block];
  std::uint32_t addends[kInt8TilePixels];
};

constexpr std::size_t divide_up(std::size_t a, std::size_t b) { return (a + b - 1) / b; }

std::size_t panel_bytes_of(std::size_t depth) {
  return kInt8Panel * (sizeof(std::int32_t) + divide_up(depth, kInt8Quad) * kInt8Quad);
}

const Int8TileKernel& tile_kernel() {
  static const Int8TileKernel found = [] {
    for (const auto* kernel : {int8_tile_for_x86(), int8_tile_for_arm()}) {
      if (kernel != nullptr) {
        return *kernel;
      }
    }
    return int8_tile_for_any();
  }();
  return found;
}

// The sizes of a convolution, and the parts that its work is done in: tiles of pixels, for blocks
// of output channels.
template <typename T>
class Work {
 public:
  Work(const Int8Convolution& convolution, const Image<const T>& source, const Image<T>& result,
       RowRange rows, const Int8TileKernel& kernel)
      : convolution_(convolution),
        window_(convolution.window),
        source_(source),
        result_(result),
        rows_(rows),
        kernel_(kernel),
        requantise_(find_requantise()),
        inputs_(source.channels / convolution.groups),
        outputs_(result.channels / convolution.groups),
        depth_(inputs_ * window_.kernel[0] * window_.kernel[1]),
        panel_bytes_(panel_bytes_of(depth_)),
        pixels_(rows.count * result.columns),
        tiles_(divide_up(pixels_, kernel_.pixels)) {
    const std::size_t fit = std::max<std::size_t>(2, kCachedWeights / panel_bytes_ / 2 * 2);
    block_ = std::min(kInt8Block / kInt8Panel, fit) * kInt8Panel;
    blocks_ = divide_up(outputs_, block_);
    // Blocks as large as each other, of an even number of panels.
    block_ = divide_up(divide_up(outputs_, blocks_), 2 * kInt8Panel) * 2 * kInt8Panel;
    blocks_ = divide_up(outputs_, block_);
    if (window_.dilations[1] == 1 && convolution.groups == 1 &&
        source.pixel_stride == source.channels) {
      run_ = inputs_ * window_.kernel[1];
      runs_in_row_ = 1;
    } else {
      run_ = inputs_;
      runs_in_row_ = window_.kernel[1];
    }
    is_pointwise_ = window_.kernel[0] == 1 && window_.kernel[1] == 1 &&
                    window_.padding == std::array<std::uint32_t, 4>{};
  }

  std::size_t num_parts() const { return convolution_.groups * blocks_ * tiles_; }

  std::size_t cost() const { return kernel_.pixels * depth_ * std::min(block_, outputs_) / 64; }

  void run(std::size_t first, std::size_t count) const {
    Stack stack;
    for (std::size_t part = first; part < first + count; ++part) {
      const std::size_t block = part / tiles_;
      const std::size_t channel = block % blocks_ * block_;
      const Block work{block / blocks_, channel, std::min(block_, outputs_ - channel)};
      if (part == first || part % tiles_ == 0) {
        begin(work, stack.start);
      }
      const std::size_t tile = part % tiles_;
      const std::size_t pixel = tile * pixels_ / tiles_;
      const std::size_t pixels = (tile + 1) * pixels_ / tiles_ - pixel;
      make(work, pixel, pixels, stack);
    }
  }

 private:
  static constexpr std::uint8_t kFlip = std::is_signed_v<T> ? 0x80 : 0;

  // Output channels of a group, from one on.
  struct Block {
    std::size_t group;
    std::size_t channel;
    std::size_t count;
  };

  // The source's zero point where its bytes are taken as unsigned.
  std::int32_t zero() const { return convolution_.source_zero_point + (kFlip != 0 ? 128 : 0); }

  const std::int8_t* panel(const Block& block, std::size_t index) const {
    const std::size_t panels = divide_up(outputs_, kInt8Panel);
    return convolution_.filter +
           (block.group * panels + block.channel / kInt8Panel + index) * panel_bytes_;
  }

  // All of a sum that the source does not change.
  void begin(const Block& block, std::int32_t* start) const {
    const std::int32_t zeros[] = {zero(), zero() - 128, 0};
    const auto zero = static_cast<std::uint32_t>(zeros[static_cast<std::size_t>(kernel_.form)]);
    const auto weight_zero = static_cast<std::uint32_t>(convolution_.filter_zero_point) *
                             static_cast<std::uint32_t>(depth_);
    const std::int32_t* bias = convolution_.store.bias;
    for (std::size_t i = 0; i < divide_up(block.count, kInt8Panel) * kInt8Panel; ++i) {
      std::uint32_t sum;
      std::memcpy(&sum, panel(block, i / kInt8Panel) + i % kInt8Panel * sizeof sum, sizeof sum);
      const bool has_bias = bias != nullptr && i < block.count;
      const auto added = static_cast<std::uint32_t>(
          has_bias ? bias[block.group * outputs_ + block.channel + i] : 0);
      start[i] = static_cast<std::int32_t>(added - zero * (sum - weight_zero));
    }
  }

  void make(const Block& block, std::size_t pixel, std::size_t count, Stack& stack) const {
    const std::size_t panels = divide_up(block.count, kInt8Panel);
    const std::size_t step = kernel_.quads * kInt8Quad;
    const auto zero_of_weights = static_cast<std::uint32_t>(convolution_.filter_zero_point);
    std::fill_n(stack.addends, count, 0);
    for (std::size_t k = 0; k < depth_; k += step) {
      const std::size_t size = std::min(step, depth_ - k);
      const Int8Tile tile{stack.slab, kernel_.stride, count, divide_up(size, kInt8Quad)};
      copy_tile(block.group, pixel, count, k, size, stack.slab);
      for (std::size_t p = 0; zero_of_weights != 0 && p < count; ++p) {
        const auto sum = static_cast<std::uint32_t>(sum_of(stack.slab + p * kernel_.stride, size));
        stack.addends[p] -= zero_of_weights * sum;
      }
      for (std::size_t i = 0; i < panels; i += 2) {
        const std::int8_t* weights =
            panel(block, i) + kInt8Panel * sizeof(std::int32_t) + k * kInt8Panel;
        kernel_.multiply(tile, weights, panel_bytes_, std::min<std::size_t>(2, panels - i),
                         k == 0 ? stack.start + i * kInt8Panel : nullptr,
                         stack.sums + i * kInt8Panel);
      }
    }
    store(block, pixel, count, stack.sums, zero_of_weights == 0 ? nullptr : stack.addends);
  }

  // Row by row, as far as the tile reaches into each.
  void store(const Block& block, std::size_t pixel, std::size_t count, const std::int32_t* sums,
             const std::uint32_t* addends) const {
    const std::size_t channel = block.group * outputs_ + block.channel;
    std::size_t column = pixel % result_.columns;
    for (std::size_t p = 0; p < count; column = 0) {
      T* row = result_.row(rows_.first + (pixel + p) / result_.columns);
      const std::size_t done = std::min(count - p, result_.columns - column);
      T* to = row + column * result_.pixel_stride + channel;
      requantise_(
          convolution_.store,
          {sums + p * kInt8SumStride, kInt8SumStride,
           addends == nullptr ? nullptr : reinterpret_cast<const std::int32_t*>(addends + p),
           channel, block.count, done, reinterpret_cast<std::uint8_t*>(to), result_.pixel_stride});
      p += done;
    }
  }

  template <typename Element>
  static std::int32_t sum_elements(const std::byte* slab, std::size_t count) {
    const auto* elements = reinterpret_cast<const Element*>(slab);
    std::int32_t sum = 0;
    for (std::size_t i = 0; i < count; ++i) {
      sum += elements[i];
    }
    return sum;
  }

  std::int32_t sum_of(const std::byte* slab, std::size_t count) const {
    switch (kernel_.form) {
      case Form::unsigned_bytes:
        return sum_elements<std::uint8_t>(slab, count);
      case Form::signed_bytes:
        return sum_elements<std::int8_t>(slab, count);
      default:
        return sum_elements<std::int16_t>(slab, count);
    }
  }

  // Elements [first, first + count) of the depth of some pixels; quads begun are filled up. This
  // and what it calls are the only ones that know of padding, strides, dilations, groups and where
  // rows lie.
  void copy_tile(std::size_t group, std::size_t pixel, std::size_t pixels, std::size_t first,
                 std::size_t count, std::byte* to) const {
    std::size_t row = rows_.first + pixel / result_.columns;
    std::size_t column = pixel % result_.columns;
    const std::size_t rest = divide_up(count, kInt8Quad) * kInt8Quad - count;
    for (std::size_t p = 0; p < pixels;) {
      std::size_t done = 1;
      if (is_pointwise_) {
        // Pixels of one row, each a run.
        done = std::min(pixels - p, result_.columns - column);
        const T* from = source_.row(row * window_.strides[0]) + group * inputs_ + first +
                        column * window_.strides[1] * source_.pixel_stride;
        copy_runs(from, count, done, window_.strides[1] * source_.pixel_stride, kernel_.stride, to);
      } else if (count != depth_ || !copy_inside(group, row, column, to)) {
        copy_pixel(group, row, column, first, count, to);
      }
      for (std::size_t i = 0; i < done; ++i) {
        if (rest != 0) {
          std::memset(to + count * kernel_.element_bytes(), 0, rest * kernel_.element_bytes());
        }
        to += kernel_.stride;
      }
      p += done;
      column += done;
      if (column == result_.columns) {
        column = 0;
        ++row;
      }
    }
  }

  void copy_runs(const T* from, std::size_t size, std::size_t count, std::size_t step,
                 std::size_t step_to, std::byte* to) const {
    kernel_.copy(
        {reinterpret_cast<const std::uint8_t*>(from), size, count, step, step_to, kFlip, zero()},
        to);
  }

  // All of the depth of a pixel whose window lies inside; otherwise false.
  bool copy_inside(std::size_t group, std::size_t row, std::size_t column, std::byte* to) const {
    const std::int64_t top = place(row, 0);
    const std::int64_t left = place(column, 1);
    const auto fits = [](std::int64_t at, std::size_t extent, std::size_t size) {
      return at >= 0 && static_cast<std::size_t>(at) + extent <= size;
    };
    if (!fits(top, extent(0), source_.rows) || !fits(left, extent(1), source_.columns)) {
      return false;
    }
    const std::size_t bytes = kernel_.element_bytes();
    const std::size_t offset =
        static_cast<std::size_t>(left) * source_.pixel_stride + group * inputs_;
    if (runs_in_row_ == 1 && source_.row_offsets == nullptr) {
      copy_runs(source_.row(static_cast<std::size_t>(top)) + offset, run_, window_.kernel[0],
                window_.dilations[0] * source_.row_stride, run_ * bytes, to);
      return true;
    }
    for (std::size_t i = 0; i < window_.kernel[0]; ++i) {
      const T* from =
          source_.row(static_cast<std::size_t>(top) + i * window_.dilations[0]) + offset;
      copy_runs(from, run_, runs_in_row_, window_.dilations[1] * source_.pixel_stride, run_ * bytes,
                to + i * runs_in_row_ * run_ * bytes);
    }
    return true;
  }

  std::size_t extent(std::size_t axis) const {
    return std::size_t{window_.dilations[axis]} * (window_.kernel[axis] - 1) + 1;
  }

  void copy_pixel(std::size_t group, std::size_t row, std::size_t column, std::size_t first,
                  std::size_t count, std::byte* to) const {
    const std::int64_t top = place(row, 0);
    const std::int64_t left = place(column, 1);
    const auto columns = static_cast<std::int64_t>(source_.columns);
    const std::size_t bytes = kernel_.element_bytes();
    const std::size_t end = first + count;
    for (std::size_t k = first; k < end;) {
      const std::size_t index = k / run_;
      const std::size_t begun = k % run_;
      const std::size_t stop = std::min(run_, begun + (end - k));
      const std::size_t i = index / runs_in_row_;
      const std::size_t j = index % runs_in_row_;
      const std::int64_t y = top + static_cast<std::int64_t>(i) * window_.dilations[0];
      const std::int64_t x = left + static_cast<std::int64_t>(j) * window_.dilations[1];
      // The elements of the run that lie inside.
      const std::size_t taps = runs_in_row_ == 1 ? window_.kernel[1] : 1;
      std::size_t low = stop;
      std::size_t high = stop;
      if (y >= 0 && y < static_cast<std::int64_t>(source_.rows)) {
        const auto limit = static_cast<std::int64_t>(taps);
        low = static_cast<std::size_t>(std::clamp<std::int64_t>(-x, 0, limit)) * inputs_;
        high = static_cast<std::size_t>(std::clamp<std::int64_t>(columns - x, 0, limit)) * inputs_;
        low = std::clamp(low, begun, stop);
        high = std::clamp(high, low, stop);
      }
      fill(low - begun, to);
      to += (low - begun) * bytes;
      if (high > low) {
        const std::int64_t at = x * static_cast<std::int64_t>(source_.pixel_stride) +
                                static_cast<std::int64_t>(group * inputs_ + low);
        copy_runs(source_.row(static_cast<std::size_t>(y)) + at, high - low, 1, 0, 0, to);
        to += (high - low) * bytes;
      }
      fill(stop - high, to);
      to += (stop - high) * bytes;
      k += stop - begun;
    }
  }

  // Padding is what stands for zero.
  void fill(std::size_t count, std::byte* to) const {
    if (count == 0) {
      return;
    }
    const int zeros[] = {zero(), zero() - 128, 0};
    std::memset(to, zeros[static_cast<std::size_t>(kernel_.form)], count * kernel_.element_bytes());
  }

  std::int64_t place(std::size_t index, std::size_t axis) const {
    const std::int64_t before = axis == 0 ? window_.padding[0] : window_.padding[3];
    return static_cast<std::int64_t>(index) * window_.strides[axis] - before;
  }

  const Int8Convolution& convolution_;
  const SlidingWindow& window_;
  const Image<const T>& source_;
  const Image<T>& result_;
  RowRange rows_;
  const Int8TileKernel& kernel_;
  Requantise requantise_;
  std::size_t inputs_;
  std::size_t outputs_;
  std::size_t depth_;
  std::size_t panel_bytes_;
  std::size_t pixels_;
  std::size_t tiles_;
  std::size_t block_;
  std::size_t blocks_;
  std::size_t run_;  // elements of depth that lie side by side in the source
  std::size_t runs_in_row_;
  bool is_pointwise_;  // without padding
};

// The same image, whichever sign its bytes have.
template <typename Byte, typename T>
Image<Byte> as_bytes(const Image<T>& image) {
  return {reinterpret_cast<Byte*>(image.data),
          image.rows,
          image.columns,
          image.channels,
          image.pixel_stride,
          image.row_stride,
          image.row_offsets};
}

template <typename T>
void convolve_any(const Int8Convolution& convolution, const Image<const T>& source,
                  const Image<T>& result, RowRange rows, pthreadpool_t threads) {
  constexpr bool kIsSigned = std::is_signed_v<T>;
  const Int8ConvolutionRows given{convolution,
                                  as_bytes<const std::uint8_t>(source),
                                  as_bytes<std::uint8_t>(result),
                                  rows,
                                  static_cast<std::uint8_t>(kIsSigned ? 0x80 : 0),
                                  convolution.source_zero_point + (kIsSigned ? 128 : 0)};
  if (convolve_rows(given, threads)) {
    return;
  }
  const Work<T> work(convolution, source, result, rows, tile_kernel());
  parallel(threads, work.num_parts(), work.cost(),
           [&work](std::size_t first, std::size_t count) { work.run(first, count); });
}

}  // namespace

std::size_t packed_int8_filter_size(std::size_t groups, std::size_t outputs, std::size_t depth) {
  return groups * divide_up(outputs, kInt8Panel) * panel_bytes_of(depth);
}

void convolve(const Int8Convolution& convolution, const Image<const std::int8_t>& source,
              const Image<std::int8_t>& result, RowRange rows, pthreadpool_t threads) {
  convolve_any(convolution, source, result, rows, threads);
}

void convolve(const Int8Convolution& convolution, const Image<const std::uint8_t>& source,
              const Image<std::uint8_t>& result, RowRange rows, pthreadpool_t threads) {
  convolve_any(convolution, source, result, rows, threads);
}

}  // namespace arenite
