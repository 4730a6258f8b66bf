#include "convolve_int8.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/convolution/int8_division.hpp"
#include "kernels/parallel.hpp"

namespace arenite {

namespace {

// Pixels whose elements are summed up together: whole tiles on every processor.
constexpr std::size_t kSummed = 252;
// Pixels for which it is worth to look at the weights first.
constexpr std::size_t kManyPixels = 8;
// Bytes of weights that are in a cache from one run to the next.
constexpr std::size_t kCachedWeights = std::size_t{1} << 18;
constexpr std::size_t kSumsOfPanel = kInt8Panel * sizeof(std::int32_t);

struct alignas(kInt8Vector) Stack {
  // Vectors, each on a cache line of its own.
  std::int32_t start[kInt8Block];
  float scales[kInt8Block];
  std::int32_t sums[kInt8TilePixels * kInt8TileChannels];
  std::int32_t addends[kSummed];
  const std::int32_t* addend;    // of the first of the pixels, and of the block's first channel
  const std::uint8_t* first_to;  // its result
  std::uint8_t* rows;            // of pieces: the sums, and then the gathered bytes
  std::uint8_t* gathered;
  bool may_overflow;
  bool has_least;
  Bounds bounds[kInt8Block / kInt8Panel];  // by panel
};

class Work : public Int8Division {
 public:
  using Int8Division::Int8Division;

  void run(std::size_t first, std::size_t count) const {
    Stack stack;
    // As much of the stack as the convolution takes, not the most that any may take.
    const std::size_t rows_bytes = round_up(bytes_of_rows(), kInt8Vector);
    auto* room = static_cast<std::uint8_t*>(
        __builtin_alloca(rows_bytes + bytes_of_gathered() + kInt8Vector));
    stack.rows = room + (-reinterpret_cast<std::uintptr_t>(room) & (kInt8Vector - 1));
    stack.gathered = stack.rows + rows_bytes;
    std::int64_t held[kMostRuns];  // the row of the source in each slot of the stack
    const std::uint8_t* runs[kMostRuns];
    for (std::size_t index = first; index < first + count;) {
      const std::size_t row = index % rows_;
      const std::size_t part = index / rows_ % parts_;
      const std::size_t block = index / rows_ / parts_;
      const std::size_t channel = block % blocks_ * block_;
      const std::size_t column = part * part_;
      const std::size_t rows = std::min(rows_ - row, first + count - index);
      std::fill_n(held, kMostRuns, std::numeric_limits<std::int64_t>::min());
      const Block work{block / blocks_, channel, std::min(block_, outputs_ - channel), column,
                       std::min(part_, columns_ - column)};
      begin(work, stack);
      for (std::size_t i = 0; i < rows; ++i) {
        const std::size_t result_row = given_.rows.first + row + i;
        std::uint8_t* to = given_.result.row(result_row) + column * given_.result.pixel_stride +
                           (work.group * outputs_ + channel) * result_bytes_;
        if (has_addend()) {
          const auto& addend = *given_.sums->addend;
          stack.addend = addend.row(result_row) + column * addend.pixel_stride +
                         work.group * outputs_ + channel;
          stack.first_to = to;
        }
        if (in_pieces_) {
          make_by_pieces(work, result_row, to, stack);
          continue;
        }
        find_runs(work, result_row, stack, held, runs);
        if (is_gathered_) {
          make_gathered(work, runs, to, stack);
        } else {
          make_tiles(work, work.columns,
                     {runs, num_runs_, run_ / kInt8Quad, step_ * window_.strides[1]}, to, stack);
        }
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

  // Where kernels find the depth of some pixels, or a piece of it.
  struct Runs {
    const std::uint8_t* const* begins;
    std::size_t count;
    std::size_t quads;
    std::size_t step;
    std::size_t depth = 0;  // of the first element
    std::int32_t* sums = nullptr;
    bool is_last = true;
  };

  bool has_addend() const { return given_.sums != nullptr && given_.sums->addend != nullptr; }

  const std::int8_t* panel(const Block& block, std::size_t channel) const {
    const std::size_t panels = divide_up(outputs_, kInt8Panel);
    return given_.convolution.filter +
           (block.group * panels + (block.channel + channel) / kInt8Panel) * panel_bytes_;
  }

  // All of a sum that the source does not change, and the scales: a panel at a time, so that the
  // compiler makes vectors of it.
  void begin(const Block& block, Stack& stack) const {
    const auto& store = given_.convolution.store;
    const std::size_t first = block.group * outputs_ + block.channel;
    const auto zero = static_cast<std::uint32_t>(given_.zero);
    const std::uint32_t weight_zeros = weight_zero_ * static_cast<std::uint32_t>(depth_);
    std::uint32_t overflows = 0;
    const bool are_many = rows_ * block.columns >= kManyPixels;
    const bool are_int8 = !has_zeros_ && !in_pieces_ && given_.sums == nullptr &&
                          store.min == -128 && store.max == 127;
    stack.has_least = kernel_.has_least == nullptr || !are_many;
    for (std::size_t i = 0; i < block.channels; i += kInt8Panel) {
      stack.has_least = stack.has_least || kernel_.has_least(panel(block, i) + kSumsOfPanel,
                                                             divide_up(depth_, kInt8Quad));
      const std::size_t count = std::min(kInt8Panel, block.channels - i);
      std::uint32_t sums[kInt8Panel];
      std::memcpy(sums, panel(block, i), sizeof sums);
      std::uint32_t bias[kInt8Panel] = {};
      if (store.bias != nullptr) { copy_panel(store.bias + first + i, count, bias); }
      float* scales = stack.scales + i;
      std::fill_n(scales, kInt8Panel, 0.0f);
      if (given_.sums != nullptr) {
        begin_sums(first + i, count, sums, bias, stack.start + i, scales);
        stack.bounds[i / kInt8Panel] = Bounds::any;
        continue;
      }
      copy_panel(store.scales + first + i, count, scales);
      for (std::size_t j = 0; j < kInt8Panel; ++j) {
        stack.start[i + j] = static_cast<std::int32_t>(bias[j] - zero * (sums[j] - weight_zeros));
        overflows |= std::fabs(scales[j]) < 1.0f ? 0 : 1;
      }
      Bounds& bounds = stack.bounds[i / kInt8Panel];
      bounds = are_int8 && count == kInt8Panel ? Bounds::int8 : Bounds::any;
      if (bounds == Bounds::int8 && are_many && kernel_.takes_small_sums &&
          start_small(scales, depth_, stack.start + i)) {
        bounds = Bounds::small_int8;
      }
    }
    stack.may_overflow = overflows != 0;
  }

  // Of a panel of which the results are not bytes, or have an addend.
  void begin_sums(std::size_t first, std::size_t count, const std::uint32_t* weights,
                  const std::uint32_t* bias, std::int32_t* start, float* scales) const {
    const Int8Sums& sums = *given_.sums;
    const auto zero = static_cast<std::uint32_t>(given_.zero);
    std::uint32_t zeros[kInt8Panel] = {};
    if (sums.filter_zero_points != nullptr) {
      copy_panel(sums.filter_zero_points + first, count, zeros);
    }
    for (std::size_t j = 0; j < kInt8Panel; ++j) {
      const std::uint32_t products = weights[j] - zeros[j] * static_cast<std::uint32_t>(depth_);
      start[j] = static_cast<std::int32_t>(bias[j] - zero * products);
    }
    if (given_.results == Int8Results::bytes) {
      copy_panel(sums.bytes.scales + first, count, scales);
      return;
    }
    if (given_.results == Int8Results::floats) { copy_panel(sums.scales + first, count, scales); }
    for (std::size_t j = 0; j < kInt8Panel; ++j) { scales[j] *= sums.source_scale; }
  }

  // Of a size known at compile time, except for the last panel.
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
    const std::size_t taps = is_apart_ ? window_.kernel[1] : 1;
    const std::size_t slots = window_.kernel[0];
    const std::int64_t left = window_.place(1, block.column);
    std::int64_t y = window_.place(0, row);
    // Windows of the next row find most of their rows again, unless rows are dilated.
    const bool shares = window_.dilations[0] == 1 && slots > 1;
    // No row is further above the first one than the padding.
    const auto below = static_cast<std::uint32_t>(y + window_.padding[0]);
    std::size_t slot = shares ? below % static_cast<std::uint32_t>(slots) : 0;
    for (std::size_t i = 0; i < slots; ++i) {
      const std::uint8_t* from;
      if (is_in_place_) {
        from = source.row(static_cast<std::size_t>(y)) +
               static_cast<std::size_t>(left) * source.pixel_stride + block.group * inputs_;
      } else {
        std::uint8_t* to = stack.rows + slot * slot_size_;
        if (held[slot] != y) {
          copy_row(block, y, left, to);
          held[slot] = y;
        }
        slot = slot + 1 == slots ? 0 : slot + 1;
        from = to;
      }
      for (std::size_t j = 0; j < taps; ++j) {
        *runs++ = from;
        from += window_.dilations[1] * step_;
      }
      y += window_.dilations[0];
    }
  }

  // Pixels of a row of the source as the kernel takes them, and the zero point beyond its edges.
  void copy_row(const Block& block, std::int64_t y, std::int64_t left, std::uint8_t* to) const {
    const auto& source = given_.source;
    const std::size_t count = (block.columns - 1) * window_.strides[1] + window_.extent(1);
    const PixelSpan inside = inside_of(left, is_row(y) ? count : 0, source_columns_);
    const std::size_t size = inputs_ * element_;
    const auto copy = element_ == 1 ? kernel_.copy : kernel_.widen;
    std::uint8_t* const end = to + count * size;
    fill_zeros(inside.first * size, to);
    to += inside.first * size;
    if (inside.count > 0) {
      const std::uint8_t* from = pixel_at(block, y, left + static_cast<std::int64_t>(inside.first));
      if (source.pixel_stride == inputs_) {
        copy(from, inside.count * inputs_, given_.flip, to);
      } else {
        for (std::size_t p = 0; p < inside.count; ++p) {
          copy(from + p * source.pixel_stride, inputs_, given_.flip, to + p * size);
        }
      }
      to += inside.count * size;
    }
    fill_zeros(static_cast<std::size_t>(end - to) + (is_gathered_ ? 2 * kInt8Vector : 0), to);
  }

  bool is_row(std::int64_t y) const { return static_cast<std::size_t>(y) < given_.source.rows; }

  const std::uint8_t* pixel_at(const Block& block, std::int64_t y, std::int64_t x) const {
    return given_.source.row(static_cast<std::size_t>(y)) +
           static_cast<std::size_t>(x) * given_.source.pixel_stride + block.group * inputs_;
  }

  // Writes the source's zero point, up to a vector too much.
  void fill_zeros(std::size_t bytes, std::uint8_t* to) const {
    if (bytes != 0) {
      const std::uint32_t zero = static_cast<std::uint32_t>(given_.zero) & 0xff;
      kernel_.fill(static_cast<std::uint16_t>(element_ == 1 ? zero * 0x101 : zero), bytes, to);
    }
  }

  void make_gathered(const Block& block, const std::uint8_t* const* runs, std::uint8_t* to,
                     Stack& stack) const {
    const std::size_t step = step_ * window_.strides[1];
    for (std::size_t pixel = 0; pixel < block.columns; pixel += most_) {
      const std::size_t count = std::min(most_, block.columns - pixel);
      // The next run overwrites what a copy has too much; weights beyond the depth are zeros.
      for (std::size_t run = 0; run < num_runs_; ++run) {
        kernel_.gather({runs[run] + pixel * step, step, run_ + kInt8Quad, vector_, count,
                        stack.gathered + run * run_, stride_});
      }
      make_copies(block, stack.gathered, count, depth_, {}, to + pixel * given_.result.pixel_stride,
                  stack);
    }
  }

  // Elements of depth of some pixels lie side by side, and `stride_` bytes from pixel to pixel.
  void make_copies(const Block& block, std::uint8_t* copies, std::size_t count, std::size_t size,
                   Runs runs, std::uint8_t* to, Stack& stack) const {
    const std::size_t quads = divide_up(size, kInt8Quad);
    for (std::size_t p = 0; has_zeros_ && p < count; ++p) {
      std::memset(copies + p * stride_ + size, 0, quads * kInt8Quad - size);
    }
    const std::uint8_t* begins[] = {copies};
    if (kernel_.widen != nullptr) {
      kernel_.widen(copies, count * stride_, 0, copies + count * stride_);
      begins[0] = copies + count * stride_;
    }
    runs.begins = begins;
    runs.count = 1;
    runs.quads = quads;
    runs.step = stride_ * kernel_.element_bytes;
    make_tiles(block, count, runs, to, stack);
  }

  void make_by_pieces(const Block& block, std::size_t row, std::uint8_t* to, Stack& stack) const {
    auto* sums = reinterpret_cast<std::int32_t*>(stack.rows);
    std::uint8_t* copies = stack.rows + kSumBytes;
    for (std::size_t pixel = 0; pixel < block.columns; pixel += most_) {
      const std::size_t count = std::min(most_, block.columns - pixel);
      for (std::size_t depth = 0; depth < depth_; depth += kMostGathered) {
        const std::size_t size = std::min(kMostGathered, depth_ - depth);
        for (std::size_t p = 0; p < count; ++p) {
          copy_piece(block, row, block.column + pixel + p, depth, size, copies + p * stride_);
        }
        Runs runs{};
        runs.depth = depth;
        runs.sums = sums;
        runs.is_last = depth + size == depth_;
        make_copies(block, copies, count, size, runs, to + pixel * given_.result.pixel_stride,
                    stack);
      }
    }
  }

  // Bytes [first, first + count) of the depth of a pixel, tap by tap or row by row.
  void copy_piece(const Block& block, std::size_t row, std::size_t column, std::size_t first,
                  std::size_t count, std::uint8_t* to) const {
    const bool has_gaps = is_apart_ || given_.source.pixel_stride != inputs_;
    const std::size_t taps = has_gaps ? 1 : window_.kernel[1];  // of a run
    const std::size_t run = taps * inputs_;
    for (const std::size_t end = first + count; first < end;) {
      const std::size_t tap = first / run * taps;
      const std::size_t begin = first % run;
      const std::size_t size = std::min(run - begin, end - first);
      const std::int64_t y =
          window_.place(0, row) +
          std::int64_t{window_.dilations[0]} * static_cast<std::int64_t>(tap / window_.kernel[1]);
      const std::int64_t x =
          window_.place(1, column) +
          std::int64_t{window_.dilations[1]} * static_cast<std::int64_t>(tap % window_.kernel[1]);
      const PixelSpan inside = inside_of(x, is_row(y) ? taps : 0, source_columns_);
      const std::size_t low = std::clamp(inside.first * inputs_, begin, begin + size);
      const std::size_t high =
          std::clamp((inside.first + inside.count) * inputs_, low, begin + size);
      fill_bytes(low - begin, to);
      if (high > low) {
        const std::int64_t at = x * static_cast<std::int64_t>(given_.source.pixel_stride);
        const std::uint8_t* from = given_.source.row(static_cast<std::size_t>(y)) + at +
                                   static_cast<std::int64_t>(block.group * inputs_ + low);
        kernel_.copy(from, high - low, given_.flip, to + (low - begin));
      }
      fill_bytes(begin + size - high, to + (high - begin));
      to += size;
      first += size;
    }
  }

  void fill_bytes(std::size_t count, std::uint8_t* to) const {
    std::memset(to, given_.zero & 0xff, count);
  }

  void make_tiles(const Block& block, std::size_t columns, const Runs& runs, std::uint8_t* to,
                  Stack& stack) const {
    if (!has_zeros_) {
      make_panels(block, columns, runs, nullptr, to, stack);
      return;
    }
    const std::uint32_t factor = given_.sums == nullptr ? weight_zero_ : 1;
    // The zero point of the weights costs a sum of the source for each pixel.
    const std::uint8_t* begins[kMostRuns];
    for (std::size_t pixel = 0; pixel < columns; pixel += kSummed) {
      const std::size_t count = std::min(kSummed, columns - pixel);
      std::fill_n(stack.addends, count, 0);
      for (std::size_t run = 0; run < runs.count; ++run) {
        begins[run] = runs.begins[run] + pixel * runs.step;
        for (std::size_t p = 0; p < count; ++p) {
          const std::uint32_t sum = kernel_.add_up(begins[run] + p * runs.step, runs.quads);
          stack.addends[p] = static_cast<std::int32_t>(
              static_cast<std::uint32_t>(stack.addends[p]) - factor * sum);
        }
      }
      Runs some = runs;
      some.begins = begins;
      make_panels(block, count, some, stack.addends, to + pixel * given_.result.pixel_stride,
                  stack);
    }
  }

  void make_panels(const Block& block, std::size_t columns, const Runs& runs,
                   const std::int32_t* addends, std::uint8_t* to, Stack& stack) const {
    const bool is_sum = given_.sums != nullptr;
    const bool in_pieces = runs.sums != nullptr;
    for (std::size_t first = 0; first < block.channels; first += kernel_.wide.channels) {
      const std::size_t count = std::min(kernel_.wide.channels, block.channels - first);
      const Int8Tiles& tiles = count <= kernel_.narrow.channels ? kernel_.narrow : kernel_.wide;
      Int8Tile tile{runs.begins,
                    runs.count,
                    runs.quads,
                    runs.step,
                    panel(block, first) + kSumsOfPanel + runs.depth * kInt8Panel +
                        first % kInt8Panel * kInt8Quad,
                    panel_bytes_,
                    stack.start + first,
                    stack.scales + first,
                    count,
                    given_.convolution.store,
                    stack.may_overflow,
                    stack.has_least,
                    to + first * result_bytes_,
                    given_.result.pixel_stride,
                    is_sum ? nullptr : addends,
                    in_pieces ? runs.sums + first : stack.sums,
                    in_pieces ? kInt8Block : kInt8TileChannels,
                    0,
                    runs.depth == 0,
                    runs.is_last && !is_sum,
                    stack.bounds[first / kInt8Panel]};
      // Groups of pixels of nearly the same size.
      const auto num = static_cast<std::uint32_t>(columns);
      const std::uint32_t num_tiles = (num - 1) / static_cast<std::uint32_t>(tiles.pixels) + 1;
      const std::uint32_t size = num / num_tiles;
      const std::uint32_t num_larger = num - size * num_tiles;
      std::size_t pixel = 0;
      for (std::uint32_t i = 0; i < num_tiles; ++i) {
        const std::uint32_t pixels = size + (i < num_larger ? 1 : 0);
        if (!in_pieces) { tile.first_sums = pixel; }
#if defined(ARENITE_X86)
        if (outputs_ * depth_ >= kCachedWeights) {
          fetch_ahead(tile, is_sum ? PixelSpan{pixel, pixels} : PixelSpan{}, i, num_tiles);
        }
#endif
        tiles.make[pixels - 1](tile, pixel);
        if (is_sum) { finish(block, tile, first, addends, {pixel, pixels}, runs.is_last, stack); }
        pixel += pixels;
      }
    }
  }

  // Has a share of the next panels fetched while sums are made, and the memory of wide results,
  // where each pixel's is elsewhere. ARM64 is left to fetch by itself.
#if defined(ARENITE_X86)
  [[gnu::noinline]] void fetch_ahead(const Int8Tile& tile, PixelSpan pixels, std::size_t share,
                                     std::size_t num_shares) const {
    asm volatile("");  // the compiler leaves out calls of functions that do no more than fetch
    const std::size_t bytes = panel_bytes_ * (kernel_.wide.channels / kInt8Panel);
    const std::int8_t* next = tile.weights + bytes;
    const std::size_t end = bytes * (share + 1) / num_shares;
    for (std::size_t at = bytes * share / num_shares; at < end; at += kInt8Vector) {
      __builtin_prefetch(next + at);
    }
    const std::uint8_t* row = tile.to + pixels.first * tile.step_to;
    for (std::size_t p = 0; p < pixels.count; ++p, row += tile.step_to) {
      for (std::size_t at = 0; at < tile.channels * sizeof(float); at += kInt8Vector) {
        __builtin_prefetch(row + at, 1);
      }
    }
  }
#endif

  // Adds the addend of some pixels of a tile to their sums.
  void add(const Int8Tile& tile, std::size_t first, PixelSpan pixels, const Stack& stack) const {
    const std::size_t stride = given_.sums->addend->pixel_stride;
    const auto before = static_cast<std::size_t>(tile.to - stack.first_to);
    const std::size_t pixel = before / given_.result.pixel_stride + pixels.first;
    const std::int32_t* addend = stack.addend + pixel * stride + first;
    for (std::size_t p = 0; p < pixels.count; ++p, addend += stride) {
      std::int32_t* sums = tile.sums_of(pixels.first + p);
      for (std::size_t j = 0; j < tile.channels; ++j) {
        sums[j] = static_cast<std::int32_t>(static_cast<std::uint32_t>(sums[j]) +
                                            static_cast<std::uint32_t>(addend[j]));
      }
    }
  }

  // Makes results of the sums of some pixels of a tile. Apart, so that what makes bytes directly is
  // small enough to be inlined.
  [[gnu::noinline]] void finish(const Block& block, const Int8Tile& tile, std::size_t first,
                                const std::int32_t* addends, PixelSpan pixels, bool is_last,
                                const Stack& stack) const {
    const Int8Sums& sums = *given_.sums;
    if (has_addend() && is_last) { add(tile, first, pixels, stack); }
    if (given_.results == Int8Results::bytes) {
      for (std::size_t p = 0; p < (is_last ? pixels.count : 0); ++p) {
        requantise(sums.bytes, tile.scales, tile.sums_of(pixels.first + p), tile.channels,
                   tile.to + (pixels.first + p) * tile.step_to);
      }
      return;
    }
    const std::size_t channel = block.group * outputs_ + block.channel + first;
    kernel_.finish({tile.sums_of(pixels.first), tile.step_sums, pixels.count, tile.channels,
                    addends == nullptr ? nullptr : addends + pixels.first,
                    addends == nullptr ? nullptr : sums.filter_zero_points + channel, tile.scales,
                    sums.bias == nullptr ? nullptr : sums.bias + channel, sums.min, sums.max,
                    is_last ? tile.to + pixels.first * tile.step_to : nullptr, tile.step_to,
                    given_.results == Int8Results::floats});
  }
};

const Int8Kernel& kernel_at_hand() {
#if defined(ARENITE_X86)
  if (has_dot_products()) { return int8_kernel_for_vnni(); }
  return vectors() == Vectors::any ? int8_kernel_for_sse2() : int8_kernel_for_avx2();
#elif defined(ARENITE_ARM64)
  return int8_kernel_for_neon();
#else
  return int8_kernel_for_any();
#endif
}

template <typename T>
void convolve_any(const Int8Convolution& convolution, const Image<const T>& source,
                  const Image<std::uint8_t>& result, RowRange rows, pthreadpool_t threads,
                  const Int8Sums* sums = nullptr, Int8Results results = Int8Results::bytes) {
  const Int8Kernel& kernel = kernel_at_hand();
  const bool flips = std::is_signed_v<T> != kernel.is_signed;
  const std::int32_t shift = !flips ? 0 : kernel.is_signed ? -128 : 128;
  const auto from = as_bytes(source);
  const Int8Given given{convolution,
                        from,
                        result,
                        rows,
                        static_cast<std::uint8_t>(flips ? 0x80 : 0),
                        convolution.source_zero_point + shift,
                        sums,
                        results};
  const Work work(given, kernel, threads != nullptr);
  parallel(threads, work.num_parts(), work.cost(),
           [&work](std::size_t first, std::size_t count) { work.run(first, count); });
}

}  // namespace

std::size_t packed_int8_filter_size(std::size_t groups, std::size_t outputs, std::size_t depth) {
  return groups * divide_up(outputs, kInt8Panel) * int8_panel_bytes(depth);
}

void convolve(const Int8Convolution& convolution, const Image<const std::int8_t>& source,
              const Image<std::int8_t>& result, RowRange rows, pthreadpool_t threads) {
  convolve_any(convolution, source, as_bytes(result), rows, threads);
}

void convolve(const Int8Convolution& convolution, const Image<const std::uint8_t>& source,
              const Image<std::uint8_t>& result, RowRange rows, pthreadpool_t threads) {
  convolve_any(convolution, source, result, rows, threads);
}

template <typename T, typename Sum>
void convolve(const Int8Sums& given, const Image<const T>& source, const Image<Sum>& result,
              RowRange rows, pthreadpool_t threads) {
  const Int8Convolution convolution{
      given.window, given.groups, given.filter, given.source_zero_point, 0, given.bytes};
  const Image<std::uint8_t> bytes{reinterpret_cast<std::uint8_t*>(result.data),
                                  result.rows,
                                  result.columns,
                                  result.channels,
                                  result.pixel_stride * sizeof(Sum),
                                  result.row_stride * sizeof(Sum),
                                  result.row_offsets};
  constexpr Int8Results results = sizeof(Sum) == 1             ? Int8Results::bytes
                                  : std::is_same_v<Sum, float> ? Int8Results::floats
                                                               : Int8Results::sums;
  convolve_any(convolution, source, bytes, rows, threads, &given, results);
}

#define ARENITE_CONVOLVE(T, Sum)                                                            \
  template void convolve<T, Sum>(const Int8Sums& convolution, const Image<const T>& source, \
                                 const Image<Sum>& result, RowRange rows, pthreadpool_t threads);
ARENITE_CONVOLVE(std::int8_t, float)
ARENITE_CONVOLVE(std::int8_t, std::int32_t)
ARENITE_CONVOLVE(std::int8_t, std::int8_t)
ARENITE_CONVOLVE(std::uint8_t, float)
ARENITE_CONVOLVE(std::uint8_t, std::int32_t)
ARENITE_CONVOLVE(std::uint8_t, std::uint8_t)
#undef ARENITE_CONVOLVE

}  // namespace arenite
