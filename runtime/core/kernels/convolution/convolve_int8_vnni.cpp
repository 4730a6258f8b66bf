// Convolutions of 8-bit integers for x86-64 with sums of four products of bytes.
#include "kernels/convolution/convolve_int8_rows.hpp"
#include "kernels/parallel.hpp"
#include "kernels/processor.hpp"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#if !defined(__clang__)
// The intrinsics of GCC 12 read what they then do not use.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

namespace arenite {

namespace {

#define ARENITE_INLINE __attribute__((always_inline)) inline

constexpr std::size_t kQuadBytes = kInt8Panel * kInt8Quad;
constexpr std::size_t kVector = 64;
// Pixels of a tile, at most: of two panels, whose sums leave four registers, and of one.
constexpr std::size_t kPixels = 14;
constexpr std::size_t kPixelsOfOne = 16;
constexpr std::size_t kPanels = 2;
// Runs of depth that lie side by side in the source, one behind another in the filter.
constexpr std::size_t kMostRuns = 64;
// Bytes of the source's rows under one row of the result, or under a part of it. Where more than a
// tile fits, rows take half of it, to leave room for weights in the first cache.
constexpr std::size_t kRowBytes = std::size_t{32} * 1024;
constexpr std::size_t kSlack = 3 * kVector;  // behind a row
// Bytes of depth that pixels are gathered to where the runs are not whole quads.
constexpr std::size_t kGathered = 512;
// Output channels whose sums begin at once, and bytes of weights that stay in the second cache
// while all rows pass.
constexpr std::size_t kBlock = 256;
constexpr std::size_t kCachedWeights = std::size_t{448} * 1024;

struct alignas(kVector) Stack {
  std::uint8_t rows[kRowBytes];
  std::uint8_t gathered[kPixels * (kGathered + 3 * kVector)];
  std::int32_t start[kBlock];
  float scales[kBlock];
  bool may_overflow;  // where a scale is not below 1, scaled sums may not fit 32 bits
};

constexpr std::size_t divide_up(std::size_t a, std::size_t b) { return (a + b - 1) / b; }

std::int32_t load32(const std::uint8_t* from) {
  std::int32_t value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// Hides a number from the compiler, which would compute more of them than there are registers.
std::size_t opaque(std::size_t number) {
  asm("" : "+r"(number));
  return number;
}

// As _mm512_dpbusd_epi32, of which GCC 12 keeps the sums before and after in registers, more than
// there are.
ARENITE_FOR_VNNI ARENITE_INLINE void add_products(__m512i& sums, __m512i source, __m512i weights) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(source), "v"(weights));
}

// One or two panels, for all pixels of a part of a row.
struct Panels {
  const std::uint8_t* const* runs;  // where each begins for the first pixel
  std::size_t num_runs;
  std::size_t quads;  // of a run
  std::size_t step;   // bytes from one pixel to the next
  const std::int8_t* weights;
  std::size_t panel_bytes;
  const std::int32_t* start;
  const float* scales;
  std::size_t channels;  // that are kept of them
  const QuantisedStore& store;
  bool may_overflow;
  std::uint8_t* to;
  std::size_t step_to;
};

// What a store needs of it, in registers.
struct Limits {
  ARENITE_FOR_VNNI explicit Limits(const QuantisedStore& store)
      : high(_mm512_set1_ps(static_cast<float>(store.max - store.zero_point))),
        zero_points(_mm512_set1_epi16(static_cast<short>(store.zero_point))),
        min(_mm512_set1_epi16(static_cast<short>(store.min))),
        max(_mm512_set1_epi16(static_cast<short>(store.max))),
        is_unsigned(store.max > 127),
        is_whole(store.max - store.min == 255) {}

  __m512 high;
  __m512i zero_points;
  __m512i min;
  __m512i max;
  bool is_unsigned;
  bool is_whole;  // as wide as the type: packing clamps
};

// What is too low becomes the lowest integer, and saturates; so would what is too high.
template <bool MayOverflow>
ARENITE_FOR_VNNI ARENITE_INLINE __m512i scaled(__m512i sums, __m512 scales, const Limits& limits) {
  const __m512 product = _mm512_mul_ps(_mm512_cvtepi32_ps(sums), scales);
  return _mm512_cvtps_epi32(MayOverflow ? _mm512_min_ps(product, limits.high) : product);
}

// Four vectors of scaled sums as bytes, one behind another.
ARENITE_FOR_VNNI ARENITE_INLINE __m512i packed(__m512i a, __m512i b, __m512i c, __m512i d,
                                               const Limits& limits) {
  __m512i low = _mm512_adds_epi16(_mm512_packs_epi32(a, b), limits.zero_points);
  __m512i high = _mm512_adds_epi16(_mm512_packs_epi32(c, d), limits.zero_points);
  if (!limits.is_whole) {
    low = _mm512_min_epi16(_mm512_max_epi16(low, limits.min), limits.max);
    high = _mm512_min_epi16(_mm512_max_epi16(high, limits.min), limits.max);
  }
  const __m512i bytes =
      limits.is_unsigned ? _mm512_packus_epi16(low, high) : _mm512_packs_epi16(low, high);
  // Packing takes turns among four lanes of each vector; this undoes it.
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return _mm512_permutexvar_epi32(order, bytes);
}

template <std::size_t Pixels, std::size_t Panels_>
ARENITE_FOR_VNNI void make_tile(const Panels& given, std::size_t pixel) {
  __m512i made[Pixels * Panels_];
#pragma GCC unroll 16
  for (std::size_t p = 0; p < Pixels; ++p) {
#pragma GCC unroll 2
    for (std::size_t j = 0; j < Panels_; ++j) {
      made[p * Panels_ + j] = _mm512_load_si512(given.start + j * kInt8Panel);
    }
  }
  // Addresses are of two pixels and what four registers scaled by 1, 2 and 4 reach.
  const std::size_t step = given.step;
  const std::size_t three = opaque(3 * step);
  const std::size_t five = opaque(5 * step);
  const std::size_t seven = opaque(7 * step);
  const std::int8_t* weights = given.weights;
  const std::size_t panel_bytes = given.panel_bytes;
  for (std::size_t run = 0; run < given.num_runs; ++run) {
    const std::uint8_t* from = given.runs[run] + pixel * step;
    const std::uint8_t* end = from + given.quads * kInt8Quad;
    do {
      const std::uint8_t* behind = from + seven;
      const std::uint8_t* const at[kPixelsOfOne] = {from,
                                                    from + step,
                                                    from + 2 * step,
                                                    from + three,
                                                    from + 4 * step,
                                                    from + five,
                                                    from + 2 * three,
                                                    behind,
                                                    behind + step,
                                                    behind + 2 * step,
                                                    behind + three,
                                                    behind + 4 * step,
                                                    behind + five,
                                                    behind + 2 * three,
                                                    behind + seven,
                                                    behind + 8 * step};
      __m512i quads[Panels_];
#pragma GCC unroll 2
      for (std::size_t j = 0; j < Panels_; ++j) {
        quads[j] = _mm512_loadu_si512(weights + j * panel_bytes);
      }
#pragma GCC unroll 16
      for (std::size_t p = 0; p < Pixels; ++p) {
        const __m512i source = _mm512_set1_epi32(load32(at[p]));
#pragma GCC unroll 2
        for (std::size_t j = 0; j < Panels_; ++j) {
          add_products(made[p * Panels_ + j], source, quads[j]);
        }
      }
      from += kInt8Quad;
      weights += kQuadBytes;
    } while (from < end);
  }
  const Limits limits(given.store);
  __m512 scales[Panels_];
#pragma GCC unroll 2
  for (std::size_t j = 0; j < Panels_; ++j) {
    scales[j] = _mm512_load_ps(given.scales + j * kInt8Panel);
  }
  constexpr std::size_t kCount = Pixels * Panels_;
  if (given.may_overflow) {
#pragma GCC unroll 28
    for (std::size_t v = 0; v < kCount; ++v) {
      made[v] = scaled<true>(made[v], scales[v % Panels_], limits);
    }
  } else {
#pragma GCC unroll 28
    for (std::size_t v = 0; v < kCount; ++v) {
      made[v] = scaled<false>(made[v], scales[v % Panels_], limits);
    }
  }
  std::uint8_t* to = given.to + pixel * given.step_to;
  const bool is_dense = given.step_to == Panels_ * kInt8Panel && given.channels == given.step_to;
  const auto last = static_cast<__mmask16>(
      (std::uint32_t{1} << (given.channels - (Panels_ - 1) * kInt8Panel)) - 1);
#pragma GCC unroll 7
  for (std::size_t v = 0; v < kCount; v += 4) {
    constexpr std::size_t kLast = kCount - 1;
    const __m512i bytes =
        packed(made[v], made[v + 1 < kLast ? v + 1 : kLast], made[v + 2 < kLast ? v + 2 : kLast],
               made[v + 3 < kLast ? v + 3 : kLast], limits);
    if (is_dense && v + 4 <= kCount) {
      _mm512_storeu_si512(to + v * kInt8Panel, bytes);
      continue;
    }
    const __m128i parts[4] = {_mm512_castsi512_si128(bytes), _mm512_extracti32x4_epi32(bytes, 1),
                              _mm512_extracti32x4_epi32(bytes, 2),
                              _mm512_extracti32x4_epi32(bytes, 3)};
#pragma GCC unroll 4
    for (std::size_t i = 0; i < 4; ++i) {
      if (v + i < kCount) {
        const std::size_t j = (v + i) % Panels_;
        _mm_mask_storeu_epi8(to + (v + i) / Panels_ * given.step_to + j * kInt8Panel,
                             j + 1 == Panels_ ? last : static_cast<__mmask16>(0xffff), parts[i]);
      }
    }
  }
}

using MakeTile = void (*)(const Panels&, std::size_t);

template <std::size_t Panels_, std::size_t... Less>
constexpr std::array<MakeTile, sizeof...(Less)> tiles(std::index_sequence<Less...>) {
  return {make_tile<Less + 1, Panels_>...};
}

constexpr auto kTilesOfOne = tiles<1>(std::make_index_sequence<kPixelsOfOne>());
constexpr auto kTilesOfTwo = tiles<2>(std::make_index_sequence<kPixels>());

// Copies bytes with their signs flipped; up to a vector beyond them is written.
ARENITE_FOR_VNNI ARENITE_INLINE void copy_flipped(const std::uint8_t* from, std::size_t count,
                                                  std::uint8_t flip, std::uint8_t* to) {
  const __m512i flips = _mm512_set1_epi8(static_cast<char>(flip));
  std::size_t i = 0;
  for (; i + kVector <= count; i += kVector) {
    _mm512_storeu_si512(to + i, _mm512_xor_si512(_mm512_loadu_si512(from + i), flips));
  }
  if (i < count) {
    const __mmask64 rest = (std::uint64_t{1} << (count - i)) - 1;
    _mm512_storeu_si512(to + i, _mm512_xor_si512(_mm512_maskz_loadu_epi8(rest, from + i), flips));
  }
}

// Copies runs of as many bytes for some pixels: for each a vector, or several of the widest, so
// that what is behind a run is read and written too.
template <typename Vector>
ARENITE_FOR_VNNI ARENITE_INLINE void gather_run(const std::uint8_t* from, std::size_t step,
                                                std::size_t size, std::size_t pixels,
                                                std::size_t step_to, std::uint8_t* to) {
  for (std::size_t p = 0; p < pixels; ++p) {
    for (std::size_t i = 0; i < size; i += sizeof(Vector)) {
      Vector bytes;
      std::memcpy(&bytes, from + i, sizeof bytes);
      std::memcpy(to + i, &bytes, sizeof bytes);
    }
    from += step;
    to += step_to;
  }
}

// The sizes of a convolution, and the parts that its work is done in: rows of the result, or parts
// of them where little fits the stack, for blocks of output channels.
class Work {
 public:
  explicit Work(const Int8ConvolutionRows& given)
      : given_(given),
        window_(given.convolution.window),
        inputs_(given.source.channels / given.convolution.groups),
        outputs_(given.result.channels / given.convolution.groups),
        depth_(inputs_ * window_.kernel[0] * window_.kernel[1]),
        panel_bytes_(kInt8Panel *
                     (sizeof(std::int32_t) + divide_up(depth_, kInt8Quad) * kInt8Quad)),
        rows_(given.rows.count),
        columns_(given.result.columns),
        source_columns_(given.source.columns) {
    const auto& source = given.source;
    const auto& result = given.result;
    const std::size_t fit =
        std::max<std::size_t>(kPanels, kCachedWeights / panel_bytes_ / kPanels * kPanels);
    block_ = std::min(kBlock / kInt8Panel, fit) * kInt8Panel;
    blocks_ = divide_up(outputs_, block_);
    // Blocks as large as each other, of an even number of panels.
    constexpr std::size_t kPair = kPanels * kInt8Panel;
    block_ = divide_up(divide_up(outputs_, blocks_), kPair) * kPair;
    blocks_ = divide_up(outputs_, block_);
    const bool is_pixel = window_.kernel[0] == 1 && window_.kernel[1] == 1;
    is_apart_ = window_.dilations[1] != 1 && window_.kernel[1] != 1;
    run_ = is_apart_ ? inputs_ : inputs_ * window_.kernel[1];
    num_runs_ = depth_ / run_;
    is_gathered_ = run_ % kInt8Quad != 0;
    const std::size_t filled = run_ + kInt8Quad;
    vector_ = filled <= sizeof(__m128i)   ? sizeof(__m128i)
              : filled <= sizeof(__m256i) ? sizeof(__m256i)
                                          : divide_up(filled, kVector) * kVector;
    const auto follow = [](const auto& image) {
      return image.rows == 1 || (image.row_offsets == nullptr &&
                                 image.row_stride == image.columns * image.pixel_stride);
    };
    const bool has_padding = window_.padding != std::array<std::uint32_t, 4>{};
    if (is_pixel && !has_padding && window_.strides[0] == 1 && window_.strides[1] == 1 &&
        source.columns == result.columns && follow(source) && follow(result)) {
      columns_ *= rows_;  // as one long row
      source_columns_ = columns_;
      rows_ = 1;
    }
    is_in_place_ = given.flip == 0 && !is_gathered_ && !has_padding &&
                   (is_pixel || source.pixel_stride == inputs_) &&
                   (result.columns - 1) * window_.strides[1] + extent(1) <= source.columns &&
                   (result.rows - 1) * window_.strides[0] + extent(0) <= source.rows;
    part_ = columns_that_fit(kRowBytes / 2);
    if (part_ < columns_) {  // whole tiles, or at least one
      part_ = part_ < kPixels ? std::min(columns_that_fit(kRowBytes), kPixels)
                              : part_ / kPixels * kPixels;
    }
    parts_ = part_ == 0 ? 0 : divide_up(columns_, part_);
    slot_size_ = part_ == 0 ? 0 : row_bytes(std::min(part_, columns_));
    step_ = is_in_place_ ? source.pixel_stride : inputs_;
  }

  bool fits() const {
    const auto& convolution = given_.convolution;
    return convolution.filter_zero_point == 0 &&
           convolution.store.rounding == Rounding::nearest_even && parts_ > 0 &&
           num_runs_ <= kMostRuns && (!is_gathered_ || depth_ <= kGathered) &&
           (is_in_place_ || window_.kernel[0] <= kMostRuns);
  }

  // Rows follow one another, so that what they share is copied once.
  std::size_t num_parts() const { return given_.convolution.groups * blocks_ * parts_ * rows_; }

  std::size_t cost() const {
    return std::min(part_, columns_) * depth_ * std::min(block_, outputs_) / 64;
  }

  ARENITE_FOR_VNNI void run(std::size_t first, std::size_t count) const {
    Stack stack;
    std::int64_t held[kMostRuns];  // which row each slot of the stack holds
    const std::uint8_t* runs[kMostRuns];
    for (std::size_t index = first; index < first + count;) {
      const std::size_t row = index % rows_;
      const std::size_t part = index / rows_ % parts_;
      const std::size_t block = index / rows_ / parts_;
      const std::size_t group = block / blocks_;
      const std::size_t channel = block % blocks_ * block_;
      const std::size_t column = part * part_;
      const std::size_t rows = std::min(rows_ - row, first + count - index);
      std::fill_n(held, kMostRuns, std::numeric_limits<std::int64_t>::min());
      const Block work{group, channel, std::min(block_, outputs_ - channel), column,
                       std::min(part_, columns_ - column)};
      begin(work, stack);
      for (std::size_t i = 0; i < rows; ++i) {
        const std::size_t result_row = given_.rows.first + row + i;
        find_runs(work, result_row, stack, held, runs);
        std::uint8_t* to = given_.result.row(result_row) + column * given_.result.pixel_stride +
                           group * outputs_ + channel;
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

  std::size_t extent(std::size_t axis) const {
    return std::size_t{window_.dilations[axis]} * (window_.kernel[axis] - 1) + 1;
  }

  // Bytes of one row of the source under so many columns of the result.
  std::size_t row_bytes(std::size_t columns) const {
    const std::size_t bytes = ((columns - 1) * window_.strides[1] + extent(1)) * inputs_;
    return divide_up(bytes, kVector) * kVector + kSlack;
  }

  // Columns of the result, at most all, whose rows of the source fit so many bytes.
  std::size_t columns_that_fit(std::size_t bytes) const {
    const std::size_t slots = window_.kernel[0];
    const std::size_t slot = bytes / slots / kVector * kVector;
    const std::size_t pixels = slot < kVector + kSlack ? 0 : (slot - kVector - kSlack) / inputs_;
    if (pixels < extent(1)) {
      return 0;
    }
    return std::min((pixels - extent(1)) / window_.strides[1] + 1, columns_);
  }

  const std::int8_t* panel(const Block& block, std::size_t channel) const {
    const std::size_t panels = divide_up(outputs_, kInt8Panel);
    return given_.convolution.filter +
           (block.group * panels + (block.channel + channel) / kInt8Panel) * panel_bytes_;
  }

  // All of a sum that the source does not change, and the scales.
  void begin(const Block& block, Stack& stack) const {
    const auto& store = given_.convolution.store;
    const std::size_t first = block.group * outputs_ + block.channel;
    stack.may_overflow = false;
    for (std::size_t i = 0; i < divide_up(block.channels, kInt8Panel) * kInt8Panel; ++i) {
      std::uint32_t sum;
      std::memcpy(&sum, panel(block, i) + i % kInt8Panel * sizeof sum, sizeof sum);
      const bool has_bias = i < block.channels && store.bias != nullptr;
      const auto bias = static_cast<std::uint32_t>(has_bias ? store.bias[first + i] : 0);
      stack.start[i] =
          static_cast<std::int32_t>(bias - static_cast<std::uint32_t>(given_.zero) * sum);
      stack.scales[i] = i < block.channels ? store.scales[first + i] : 0.0f;
      stack.may_overflow |= !(std::fabs(stack.scales[i]) < 1.0f);
    }
  }

  // Where the runs of depth begin for the first of the columns.
  ARENITE_FOR_VNNI void find_runs(const Block& block, std::size_t row, Stack& stack,
                                  std::int64_t* held, const std::uint8_t** runs) const {
    const auto& source = given_.source;
    const std::size_t taps = is_apart_ ? window_.kernel[1] : 1;
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

  // Pixels of a row of the source as unsigned bytes, with what stands for zero beyond its edges.
  ARENITE_FOR_VNNI void copy_row(const Block& block, std::int64_t y, std::int64_t left,
                                 std::uint8_t* to) const {
    const auto& source = given_.source;
    const std::size_t count = (block.columns - 1) * window_.strides[1] + extent(1);
    const bool is_inside = y >= 0 && y < static_cast<std::int64_t>(source.rows);
    const auto most = is_inside ? static_cast<std::int64_t>(count) : 0;
    const auto low = std::clamp<std::int64_t>(-left, 0, most);
    const auto high =
        std::clamp<std::int64_t>(static_cast<std::int64_t>(source_columns_) - left, low, most);
    const auto pixels = static_cast<std::size_t>(high - low);
    std::uint8_t* const end = to + count * inputs_;
    fill_zeros(static_cast<std::size_t>(low) * inputs_, to);
    to += static_cast<std::size_t>(low) * inputs_;
    if (pixels > 0) {
      const std::uint8_t* from = source.row(static_cast<std::size_t>(y)) +
                                 static_cast<std::size_t>(left + low) * source.pixel_stride +
                                 block.group * inputs_;
      if (source.pixel_stride == inputs_) {
        copy_flipped(from, pixels * inputs_, given_.flip, to);
      } else {
        for (std::size_t p = 0; p < pixels; ++p) {
          copy_flipped(from + p * source.pixel_stride, inputs_, given_.flip, to + p * inputs_);
        }
      }
      to += pixels * inputs_;
    }
    fill_zeros(static_cast<std::size_t>(end - to) + (is_gathered_ ? 2 * kVector : 0), to);
  }

  // Writes what stands for zero, up to a vector too much.
  ARENITE_FOR_VNNI ARENITE_INLINE void fill_zeros(std::size_t count, std::uint8_t* to) const {
    const __m512i zeros = _mm512_set1_epi8(static_cast<char>(given_.zero));
    for (std::size_t i = 0; i < count; i += kVector) {
      _mm512_storeu_si512(to + i, zeros);
    }
  }

  ARENITE_FOR_VNNI void make_row(const Block& block, const std::uint8_t* const* runs,
                                 std::uint8_t* to, Stack& stack) const {
    const std::size_t step = step_ * window_.strides[1];
    if (!is_gathered_) {
      make_tiles(block, block.columns, {runs, num_runs_, run_ / kInt8Quad, step}, to, stack);
      return;
    }
    const std::size_t stride = divide_up(depth_ - run_ + vector_, kVector) * kVector;
    const std::size_t most = sizeof stack.gathered / stride / kPixels * kPixels;
    const std::uint8_t* gathered[] = {stack.gathered};
    for (std::size_t pixel = 0; pixel < block.columns; pixel += most) {
      const std::size_t count = std::min(most, block.columns - pixel);
      // What one run leaves behind its end the next one overwrites; weights there are zeros in the
      // end.
      for (std::size_t run = 0; run < num_runs_; ++run) {
        const std::uint8_t* from = runs[run] + pixel * step;
        std::uint8_t* target = stack.gathered + run * run_;
        switch (vector_) {
          case sizeof(__m128i):
            gather_run<__m128i>(from, step, sizeof(__m128i), count, stride, target);
            break;
          case sizeof(__m256i):
            gather_run<__m256i>(from, step, sizeof(__m256i), count, stride, target);
            break;
          default:
            gather_run<__m512i>(from, step, run_ + kInt8Quad, count, stride, target);
        }
      }
      make_tiles(block, count, {gathered, 1, divide_up(depth_, kInt8Quad), stride},
                 to + pixel * given_.result.pixel_stride, stack);
    }
  }

  struct Runs {
    const std::uint8_t* const* begins;
    std::size_t count;
    std::size_t quads;
    std::size_t step;
  };

  ARENITE_FOR_VNNI void make_tiles(const Block& block, std::size_t columns, const Runs& runs,
                                   std::uint8_t* to, const Stack& stack) const {
    constexpr std::size_t kPair = kPanels * kInt8Panel;
    for (std::size_t first = 0; first < block.channels; first += kPair) {
      const std::size_t count = std::min(kPair, block.channels - first);
      const bool is_one = count <= kInt8Panel;
      const MakeTile* made = is_one ? kTilesOfOne.data() : kTilesOfTwo.data();
      const Panels panels{runs.begins,
                          runs.count,
                          runs.quads,
                          runs.step,
                          panel(block, first) + kInt8Panel * sizeof(std::int32_t),
                          panel_bytes_,
                          stack.start + first,
                          stack.scales + first,
                          count,
                          given_.convolution.store,
                          stack.may_overflow,
                          to + first,
                          given_.result.pixel_stride};
      // Tiles of nearly the same size.
      const auto num = static_cast<std::uint32_t>(columns);
      const std::uint32_t num_tiles = (num - 1) / (is_one ? kPixelsOfOne : kPixels) + 1;
      const std::uint32_t size = num / num_tiles;
      const std::uint32_t num_larger = num - size * num_tiles;
      std::size_t pixel = 0;
      for (std::uint32_t tile = 0; tile < num_tiles; ++tile) {
        const std::uint32_t pixels = size + (tile < num_larger ? 1 : 0);
        made[pixels - 1](panels, pixel);
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
  std::size_t inputs_;
  std::size_t outputs_;
  std::size_t depth_;
  std::size_t panel_bytes_;
  std::size_t rows_;
  std::size_t columns_;
  std::size_t source_columns_;
  std::size_t block_;
  std::size_t blocks_;
  std::size_t part_;
  std::size_t parts_;
  std::size_t run_;
  std::size_t num_runs_;
  std::size_t vector_;     // bytes that a run is gathered by, with a quad behind it
  std::size_t slot_size_;  // bytes of a row of the source, on the stack
  std::size_t step_;       // from one pixel of the source to the next, where runs are found
  bool is_apart_;          // taps of a row, by dilation
  bool is_gathered_;       // pixels, since their runs are not whole quads
  bool is_in_place_;       // the source is read where it lies
};

}  // namespace

const std::size_t kInt8RowsStack = sizeof(Stack);

bool convolve_rows_for_vnni(const Int8ConvolutionRows& given, pthreadpool_t threads) {
  if (!has_dot_products()) {
    return false;
  }
  const Work work(given);
  if (!work.fits()) {
    return false;
  }
  parallel(threads, work.num_parts(), work.cost(),
           [&work](std::size_t first, std::size_t count) { work.run(first, count); });
  return true;
}

}  // namespace arenite

#else

namespace arenite {

const std::size_t kInt8RowsStack = 0;

bool convolve_rows_for_vnni(const Int8ConvolutionRows&, pthreadpool_t) { return false; }

}  // namespace arenite

#endif
