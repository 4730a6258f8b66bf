#include "convolve_int8_rows.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/convolution/int8_row_kernel.hpp"
#include "kernels/convolution/int8_row_sizes.hpp"
#include "kernels/parallel.hpp"

namespace arenite {

namespace {

constexpr std::size_t kVector = kInt8RowVector;
// Pixels whose elements are summed up at once, whole tiles on every processor.
constexpr std::size_t kSummed = 252;

struct alignas(kVector) Stack {
  std::uint8_t rows[kInt8RowBytes];
  std::uint8_t gathered[kInt8PixelsOfTwo * (kInt8Gathered + 3 * kVector)];
  std::int32_t start[kInt8RowBlock];
  float scales[kInt8RowBlock];
  std::int32_t addends[kSummed];
  bool may_overflow;  // where a scale is not below 1, scaled sums may not fit 32 bits
};

constexpr std::size_t divide_up(std::size_t a, std::size_t b) { return (a + b - 1) / b; }

class Work {
 public:
  Work(const Int8ConvolutionRows& given, const Int8RowKernel& kernel, bool is_shared)
      : given_(given),
        window_(given.convolution.window),
        kernel_(kernel),
        sizes_(given, kernel, is_shared),
        stride_(divide_up(sizes_.depth - sizes_.run + sizes_.vector, kVector) * kVector) {
    const std::size_t copies = kernel.widen == nullptr ? 1 : 1 + kernel.element_bytes;
    const std::size_t fit = sizeof(Stack::gathered) / (copies * stride_);
    const std::size_t whole = fit / kernel.wide.pixels * kernel.wide.pixels;
    most_ = whole == 0 ? fit : whole;
  }

  bool fits() const { return sizes_.fits; }

  // Rows follow one another, so that what they share is copied once.
  std::size_t num_parts() const {
    return given_.convolution.groups * sizes_.blocks * sizes_.parts * sizes_.rows;
  }

  std::size_t cost() const {
    return std::min(sizes_.part, sizes_.columns) * sizes_.depth *
           std::min(sizes_.block, sizes_.outputs) / 64;
  }

  void run(std::size_t first, std::size_t count) const {
    Stack stack;
    std::int64_t held[kInt8MostRuns];  // which row each slot of the stack holds
    const std::uint8_t* runs[kInt8MostRuns];
    for (std::size_t index = first; index < first + count;) {
      const std::size_t row = index % sizes_.rows;
      const std::size_t part = index / sizes_.rows % sizes_.parts;
      const std::size_t block = index / sizes_.rows / sizes_.parts;
      const std::size_t group = block / sizes_.blocks;
      const std::size_t channel = block % sizes_.blocks * sizes_.block;
      const std::size_t column = part * sizes_.part;
      const std::size_t rows = std::min(sizes_.rows - row, first + count - index);
      std::fill_n(held, kInt8MostRuns, std::numeric_limits<std::int64_t>::min());
      const Block work{group, channel, std::min(sizes_.block, sizes_.outputs - channel), column,
                       std::min(sizes_.part, sizes_.columns - column)};
      begin(work, stack);
      for (std::size_t i = 0; i < rows; ++i) {
        const std::size_t result_row = given_.rows.first + row + i;
        find_runs(work, result_row, stack, held, runs);
        std::uint8_t* to = given_.result.row(result_row) + column * given_.result.pixel_stride +
                           group * sizes_.outputs + channel;
        make_row(work, runs, to, stack);
      }
      index += rows;
    }
  }

 private:
  // Output channels of a group, and columns of the result.
  struct Block {
    std::size_t group;
    std::size_t channel;
    std::size_t channels;
    std::size_t column;
    std::size_t columns;
  };

  std::uint32_t zero_of_weights() const {
    return static_cast<std::uint32_t>(given_.convolution.filter_zero_point);
  }

  std::size_t extent(std::size_t axis) const { return sizes_.extent(axis); }

  const std::int8_t* panel(const Block& block, std::size_t channel) const {
    const std::size_t panels = divide_up(sizes_.outputs, kInt8Panel);
    return given_.convolution.filter +
           (block.group * panels + (block.channel + channel) / kInt8Panel) * sizes_.panel_bytes;
  }

  // All of a sum that the source does not change, and the scales: a panel at a time, so that the
  // compiler makes vectors of it.
  void begin(const Block& block, Stack& stack) const {
    const auto& store = given_.convolution.store;
    const std::size_t first = block.group * sizes_.outputs + block.channel;
    const auto zero = static_cast<std::uint32_t>(given_.zero);
    const std::uint32_t weight_zeros = zero_of_weights() * static_cast<std::uint32_t>(sizes_.depth);
    std::uint32_t overflows = 0;
    for (std::size_t i = 0; i < block.channels; i += kInt8Panel) {
      const std::size_t count = std::min(kInt8Panel, block.channels - i);
      std::uint32_t sums[kInt8Panel];
      std::memcpy(sums, panel(block, i), sizeof sums);
      std::uint32_t bias[kInt8Panel] = {};
      if (store.bias != nullptr) {
        copy_panel(store.bias + first + i, count, bias);
      }
      float* scales = stack.scales + i;
      std::fill_n(scales, kInt8Panel, 0.0f);
      copy_panel(store.scales + first + i, count, scales);
      for (std::size_t j = 0; j < kInt8Panel; ++j) {
        stack.start[i + j] = static_cast<std::int32_t>(bias[j] - zero * (sums[j] - weight_zeros));
        overflows |= std::fabs(scales[j]) < 1.0f ? 0 : 1;
      }
    }
    stack.may_overflow = overflows != 0;
  }

  // Of as many bytes as is known when it is compiled, unless it is the last.
  static void copy_panel(const void* from, std::size_t count, void* to) {
    if (count == kInt8Panel) {
      std::memcpy(to, from, kInt8Panel * sizeof(std::int32_t));
    } else {
      std::memcpy(to, from, count * sizeof(std::int32_t));
    }
  }

  // Where the runs of depth begin for the first of the columns.
  void find_runs(const Block& block, std::size_t row, Stack& stack, std::int64_t* held,
                 const std::uint8_t** runs) const {
    const auto& source = given_.source;
    const std::size_t taps = sizes_.is_apart ? window_.kernel[1] : 1;
    const std::size_t slots = window_.kernel[0];
    const std::int64_t left = place(block.column, 1);
    std::int64_t y = place(row, 0);
    // Windows of the next row find most of their rows again, unless those are apart.
    const bool shares = window_.dilations[0] == 1 && slots > 1;
    // Above the first row there are no more than the padding's.
    const auto below = static_cast<std::uint32_t>(y + window_.padding[0]);
    std::size_t slot = shares ? below % static_cast<std::uint32_t>(slots) : 0;
    for (std::size_t i = 0; i < slots; ++i) {
      const std::uint8_t* from;
      if (sizes_.is_in_place) {
        from = source.row(static_cast<std::size_t>(y)) +
               static_cast<std::size_t>(left) * source.pixel_stride + block.group * sizes_.inputs;
      } else {
        std::uint8_t* to = stack.rows + slot * sizes_.slot_size;
        if (held[slot] != y) {
          copy_row(block, y, left, to);
          held[slot] = y;
        }
        slot = slot + 1 == slots ? 0 : slot + 1;
        from = to;
      }
      for (std::size_t j = 0; j < taps; ++j) {
        *runs++ = from;
        from += window_.dilations[1] * sizes_.step;
      }
      y += window_.dilations[0];
    }
  }

  // Pixels of a row of the source as unsigned bytes, with what stands for zero beyond its edges.
  void copy_row(const Block& block, std::int64_t y, std::int64_t left, std::uint8_t* to) const {
    const auto& source = given_.source;
    const std::size_t count = (block.columns - 1) * window_.strides[1] + extent(1);
    const bool is_inside = y >= 0 && y < static_cast<std::int64_t>(source.rows);
    const auto most = is_inside ? static_cast<std::int64_t>(count) : 0;
    const auto low = std::clamp<std::int64_t>(-left, 0, most);
    const auto high = std::clamp<std::int64_t>(
        static_cast<std::int64_t>(sizes_.source_columns) - left, low, most);
    const auto pixels = static_cast<std::size_t>(high - low);
    const std::size_t size = sizes_.inputs * sizes_.element;
    const auto copy = sizes_.element == 1 ? kernel_.copy : kernel_.widen;
    std::uint8_t* const end = to + count * size;
    fill_zeros(static_cast<std::size_t>(low) * size, to);
    to += static_cast<std::size_t>(low) * size;
    if (pixels > 0) {
      const std::uint8_t* from = source.row(static_cast<std::size_t>(y)) +
                                 static_cast<std::size_t>(left + low) * source.pixel_stride +
                                 block.group * sizes_.inputs;
      if (source.pixel_stride == sizes_.inputs) {
        copy(from, pixels * sizes_.inputs, given_.flip, to);
      } else {
        for (std::size_t p = 0; p < pixels; ++p) {
          copy(from + p * source.pixel_stride, sizes_.inputs, given_.flip, to + p * size);
        }
      }
      to += pixels * size;
    }
    fill_zeros(static_cast<std::size_t>(end - to) + (sizes_.is_gathered ? 2 * kVector : 0), to);
  }

  // Writes what stands for zero, up to a vector too much.
  void fill_zeros(std::size_t bytes, std::uint8_t* to) const {
    if (bytes != 0) {
      kernel_.fill(static_cast<std::uint16_t>(given_.zero * (sizes_.element == 1 ? 0x101 : 1)),
                   bytes, to);
    }
  }

  void make_row(const Block& block, const std::uint8_t* const* runs, std::uint8_t* to,
                Stack& stack) const {
    const std::size_t step = sizes_.step * window_.strides[1];
    if (!sizes_.is_gathered) {
      make_tiles(block, block.columns, {runs, sizes_.num_runs, sizes_.run / kInt8Quad, step}, to,
                 stack);
      return;
    }
    const std::size_t element = kernel_.element_bytes;
    const std::size_t stride = stride_;
    const std::size_t most = most_;
    for (std::size_t pixel = 0; pixel < block.columns; pixel += most) {
      const std::size_t count = std::min(most, block.columns - pixel);
      // What one run leaves behind its end the next one overwrites; weights there are zeros in the
      // end.
      for (std::size_t run = 0; run < sizes_.num_runs; ++run) {
        kernel_.gather({runs[run] + pixel * step, step, sizes_.run + kInt8Quad, sizes_.vector,
                        count, stack.gathered + run * sizes_.run, stride});
      }
      const std::size_t rest = divide_up(sizes_.depth, kInt8Quad) * kInt8Quad - sizes_.depth;
      for (std::size_t p = 0; zero_of_weights() != 0 && p < count; ++p) {
        std::memset(stack.gathered + p * stride + sizes_.depth, 0, rest);
      }
      const std::uint8_t* gathered[] = {stack.gathered};
      if (kernel_.widen != nullptr) {
        std::uint8_t* widened = stack.gathered + count * stride;
        kernel_.widen(stack.gathered, count * stride, 0, widened);
        gathered[0] = widened;
      }
      make_tiles(block, count, {gathered, 1, divide_up(sizes_.depth, kInt8Quad), stride * element},
                 to + pixel * given_.result.pixel_stride, stack);
    }
  }

  struct Runs {
    const std::uint8_t* const* begins;
    std::size_t count;
    std::size_t quads;
    std::size_t step;
  };

  void make_tiles(const Block& block, std::size_t columns, const Runs& runs, std::uint8_t* to,
                  Stack& stack) const {
    if (zero_of_weights() == 0) {
      make_some(block, columns, runs, nullptr, to, stack);
      return;
    }
    const std::uint8_t* begins[kInt8MostRuns];
    for (std::size_t pixel = 0; pixel < columns; pixel += kSummed) {
      const std::size_t count = std::min(kSummed, columns - pixel);
      std::fill_n(stack.addends, count, 0);
      for (std::size_t run = 0; run < runs.count; ++run) {
        begins[run] = runs.begins[run] + pixel * runs.step;
        for (std::size_t p = 0; p < count; ++p) {
          const std::uint32_t sum = kernel_.add_up(begins[run] + p * runs.step, runs.quads);
          stack.addends[p] = static_cast<std::int32_t>(
              static_cast<std::uint32_t>(stack.addends[p]) - zero_of_weights() * sum);
        }
      }
      make_some(block, count, {begins, runs.count, runs.quads, runs.step}, stack.addends,
                to + pixel * given_.result.pixel_stride, stack);
    }
  }

  void make_some(const Block& block, std::size_t columns, const Runs& runs,
                 const std::int32_t* addends, std::uint8_t* to, const Stack& stack) const {
    for (std::size_t first = 0; first < block.channels; first += kernel_.wide.channels) {
      const std::size_t count = std::min(kernel_.wide.channels, block.channels - first);
      const Int8Tiles& tiles = count <= kernel_.narrow.channels ? kernel_.narrow : kernel_.wide;
      const Int8Panels panels{runs.begins,
                              runs.count,
                              runs.quads,
                              runs.step,
                              panel(block, first) + kInt8Panel * sizeof(std::int32_t),
                              sizes_.panel_bytes,
                              stack.start + first,
                              stack.scales + first,
                              count,
                              given_.convolution.store,
                              stack.may_overflow,
                              to + first,
                              given_.result.pixel_stride,
                              addends};
      // Tiles of nearly the same size.
      const auto num = static_cast<std::uint32_t>(columns);
      const std::uint32_t num_tiles = (num - 1) / static_cast<std::uint32_t>(tiles.pixels) + 1;
      const std::uint32_t size = num / num_tiles;
      const std::uint32_t num_larger = num - size * num_tiles;
      std::size_t pixel = 0;
      for (std::uint32_t tile = 0; tile < num_tiles; ++tile) {
        const std::uint32_t pixels = size + (tile < num_larger ? 1 : 0);
        tiles.make[pixels - 1](panels, pixel);
        pixel += pixels;
      }
    }
  }

  std::int64_t place(std::size_t index, std::size_t axis) const {
    const std::int64_t before = axis == 0 ? window_.padding[0] : window_.padding[3];
    return static_cast<std::int64_t>(index) * window_.strides[axis] - before;
  }

  const Int8ConvolutionRows& given_;
  const SlidingWindow& window_;
  const Int8RowKernel& kernel_;
  Int8RowSizes sizes_;
  // Of gathered pixels: bytes from one to the next, and how many there is place for. Where they are
  // widened, the elements lie behind the bytes of all.
  std::size_t stride_;
  std::size_t most_;
};

const Int8RowKernel* row_kernel() {
  static const Int8RowKernel* found = [] {
    const auto* kernel = int8_row_kernel_for_vnni();
    return kernel == nullptr ? int8_row_kernel_for_avx2() : kernel;
  }();
  return found;
}

}  // namespace

bool convolve_rows(const Int8ConvolutionRows& given, pthreadpool_t threads) {
  const auto* kernel = row_kernel();
  if (kernel == nullptr) {
    return false;
  }
  const Work work(given, *kernel, threads != nullptr);
  if (!work.fits()) {
    return false;
  }
  parallel(threads, work.num_parts(), work.cost(),
           [&work](std::size_t first, std::size_t count) { work.run(first, count); });
  return true;
}

}  // namespace arenite
