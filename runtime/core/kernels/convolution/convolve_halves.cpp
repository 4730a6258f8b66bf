// Convolutions of 16-bit floats for ARMv8.2.
#include "kernels/convolution/convolve_halves.hpp"

#if defined(ARENITE_ARM64)
#include <arm_neon.h>

#include <algorithm>
#include <array>
#include <limits>
#include <type_traits>

#include "kernels/convolution/pixel_rows.hpp"
#include "kernels/parallel.hpp"

namespace arenite {

namespace {

constexpr std::size_t kPixels = 8;  // of a tile
constexpr std::size_t kLanes = 8;
// Products that are added up in 16 bits. Each step of a sum rounds: that of 64 is wrong by 9e-4 of
// its size, one of 576 in 16 bits alone by 2.5e-3; fewer take more additions in 32 bits.
constexpr std::size_t kTogether = 64;
// Numbers under the windows of a tile that reach into the padding, and runs of them.
constexpr std::size_t kCopies = 24576;
constexpr std::size_t kMostRuns = 64;
// Bytes of a filter that stay in the second cache while tiles go by, if they are enough panels.
constexpr std::size_t kCached = std::size_t{1} << 19;
constexpr std::size_t kFewestPanels = 8;

constexpr int kHasMin = 1;
constexpr int kHasMax = 2;

// Pixels side by side and channels of a panel.
struct HalfTile {
  const Half* const* runs;  // numbers side by side under the window of the first pixel
  std::size_t num_runs;
  std::size_t run_length;
  std::size_t source_step;
  const Half* filter;
  const Half* bias;
  const Half* addend;  // null: none
  std::size_t addend_step;
  Half* result;  // null: they stay in `sums`
  std::size_t result_step;
  float* sums;  // by pixels
  float min;
  float max;
  int flags;
};

#define ARENITE_IN_HALVES __attribute__((target("arch=armv8.2-a+fp16")))
#define ARENITE_TILE __attribute__((always_inline, target("arch=armv8.2-a+fp16")))

const __fp16* numbers(const Half* from) { return reinterpret_cast<const __fp16*>(from); }

// Compilers broadcast a lane where they should multiply by it, and copy pixels to registers that
// have lanes: hence the instructions.
template <int Lane, std::size_t Pixels, std::size_t Parts>
ARENITE_TILE inline void multiply_step(const float16x8_t (&pixels)[Pixels], const Half*& filter,
                                       float16x8_t (&sums)[Pixels][Parts]) {
  float16x8_t weights[Parts];
  if constexpr (Parts == 2) {
    asm volatile("ldp %q0, %q1, [%2], #32"
                 : "=w"(weights[0]), "=w"(weights[1]), "+r"(filter)
                 :
                 : "memory");
  } else {
    asm volatile("ldr %q0, [%1], #32" : "=w"(weights[0]), "+r"(filter) : : "memory");
  }
#pragma GCC unroll 8
  for (std::size_t p = 0; p < Pixels; ++p) {
#pragma GCC unroll 2
    for (std::size_t part = 0; part < Parts; ++part) {
      float16x8_t sum = sums[p][part];
      asm("fmla %0.8h, %1.8h, %2.h[%3]"
          : "+w"(sum)
          : "w"(weights[part]), "x"(pixels[p]), "i"(Lane));
      sums[p][part] = sum;
    }
  }
}

// Reads so many bytes of a pixel and moves on.
template <int Bytes>
ARENITE_TILE inline float16x8_t next(const Half*& from) {
  const Half* place = from;
  float16x8_t read;
  if constexpr (Bytes == 16) {
    asm volatile("ldr %q0, [%1], #16" : "=x"(read), "+r"(place) : : "memory");
  } else if constexpr (Bytes == 8) {
    asm volatile("ldr %d0, [%1], #8" : "=x"(read), "+r"(place) : : "memory");
  } else {
    asm volatile("ldr %h0, [%1], #2" : "=x"(read), "+r"(place) : : "memory");
  }
  from = place;
  return read;
}

// Adds so many products to each sum.
template <std::size_t Pixels, std::size_t Parts>
ARENITE_TILE inline void multiply(const Half* (&from)[Pixels], const Half*& filter,
                                  std::size_t count, float16x8_t (&sums)[Pixels][Parts]) {
  float16x8_t pixels[Pixels];
#pragma GCC unroll 1
  for (std::size_t eights = count / 8; eights > 0; --eights) {
#pragma GCC unroll 8
    for (std::size_t p = 0; p < Pixels; ++p) { pixels[p] = next<16>(from[p]); }
    multiply_step<0>(pixels, filter, sums);
    multiply_step<1>(pixels, filter, sums);
    multiply_step<2>(pixels, filter, sums);
    multiply_step<3>(pixels, filter, sums);
    multiply_step<4>(pixels, filter, sums);
    multiply_step<5>(pixels, filter, sums);
    multiply_step<6>(pixels, filter, sums);
    multiply_step<7>(pixels, filter, sums);
  }
  if ((count & 4) != 0) {
#pragma GCC unroll 8
    for (std::size_t p = 0; p < Pixels; ++p) { pixels[p] = next<8>(from[p]); }
    multiply_step<0>(pixels, filter, sums);
    multiply_step<1>(pixels, filter, sums);
    multiply_step<2>(pixels, filter, sums);
    multiply_step<3>(pixels, filter, sums);
  }
#pragma GCC unroll 1
  for (std::size_t rest = count & 3; rest > 0; --rest) {
#pragma GCC unroll 8
    for (std::size_t p = 0; p < Pixels; ++p) { pixels[p] = next<2>(from[p]); }
    multiply_step<0>(pixels, filter, sums);
  }
}

// Adds sums to those of 32 bits: the first ones take their place.
template <std::size_t Pixels, std::size_t Parts>
ARENITE_TILE inline void add_up(const float16x8_t (&sums)[Pixels][Parts], float* to,
                                bool is_first) {
#pragma GCC unroll 8
  for (std::size_t p = 0; p < Pixels; ++p) {
#pragma GCC unroll 2
    for (std::size_t part = 0; part < Parts; ++part) {
      float32x4_t low = vcvt_f32_f16(vget_low_f16(sums[p][part]));
      float32x4_t high = vcvt_high_f32_f16(sums[p][part]);
      float* const place = to + (p * Parts + part) * kLanes;
      if (!is_first) {
        low = vaddq_f32(vld1q_f32(place), low);
        high = vaddq_f32(vld1q_f32(place + 4), high);
      }
      vst1q_f32(place, low);
      vst1q_f32(place + 4, high);
    }
  }
}

template <std::size_t Pixels, std::size_t Parts>
ARENITE_IN_HALVES void multiply_tile(const HalfTile& tile) {
  float16x8_t sums[Pixels][Parts];
#pragma GCC unroll 2
  for (std::size_t part = 0; part < Parts; ++part) {
    const float16x8_t bias = vld1q_f16(numbers(tile.bias + part * kLanes));
#pragma GCC unroll 8
    for (std::size_t p = 0; p < Pixels; ++p) { sums[p][part] = bias; }
  }
  const Half* filter = tile.filter;
  std::size_t room = kTogether;
  bool is_first = true;
  for (std::size_t run = 0; run < tile.num_runs; ++run) {
    const Half* from[Pixels];
#pragma GCC unroll 8
    for (std::size_t p = 0; p < Pixels; ++p) { from[p] = tile.runs[run] + p * tile.source_step; }
    for (std::size_t left = tile.run_length; left > 0;) {
      if (room == 0) {
        if (is_first) {
          add_up(sums, tile.sums, true);
        } else {
          add_up(sums, tile.sums, false);
        }
#pragma GCC unroll 8
        for (std::size_t p = 0; p < Pixels; ++p) {
#pragma GCC unroll 2
          for (std::size_t part = 0; part < Parts; ++part) { sums[p][part] = vdupq_n_f16(0); }
        }
        is_first = false;
        room = kTogether;
      }
      const std::size_t count = std::min(left, room);
      multiply(from, filter, count, sums);
      left -= count;
      room -= count;
    }
  }
  if (tile.result == nullptr) {
    add_up(sums, tile.sums, is_first);
    return;
  }
  if (!is_first) {
#pragma GCC unroll 8
    for (std::size_t p = 0; p < Pixels; ++p) {
#pragma GCC unroll 2
      for (std::size_t part = 0; part < Parts; ++part) {
        const float* const place = tile.sums + (p * Parts + part) * kLanes;
        const float32x4_t low =
            vaddq_f32(vld1q_f32(place), vcvt_f32_f16(vget_low_f16(sums[p][part])));
        const float32x4_t high = vaddq_f32(vld1q_f32(place + 4), vcvt_high_f32_f16(sums[p][part]));
        sums[p][part] = vcvt_high_f16_f32(vcvt_f16_f32(low), high);
      }
    }
  }
  // Rounding keeps the order of numbers: limits may be rounded, too.
  const auto each = [&](const auto& change) ARENITE_TILE {
#pragma GCC unroll 8
    for (std::size_t p = 0; p < Pixels; ++p) {
#pragma GCC unroll 2
      for (std::size_t part = 0; part < Parts; ++part) { sums[p][part] = change(sums[p][part]); }
    }
  };
  if (tile.addend != nullptr) {
    const Half* addend = tile.addend;
    const std::size_t step = tile.addend_step * sizeof(Half);
#pragma GCC unroll 8
    for (std::size_t p = 0; p < Pixels; ++p) {
#pragma GCC unroll 2
      for (std::size_t part = 0; part < Parts; ++part) {
        const float16x8_t added = vld1q_f16(numbers(addend + part * kLanes));
        sums[p][part] = vaddq_f16(sums[p][part], added);
      }
      addend = reinterpret_cast<const Half*>(reinterpret_cast<const std::byte*>(addend) + step);
    }
  }
  if ((tile.flags & kHasMin) != 0) {
    const float16x8_t min = vdupq_n_f16(static_cast<__fp16>(tile.min));
    each([&](float16x8_t sum) ARENITE_TILE { return vmaxq_f16(sum, min); });
  }
  if ((tile.flags & kHasMax) != 0) {
    const float16x8_t max = vdupq_n_f16(static_cast<__fp16>(tile.max));
    each([&](float16x8_t sum) ARENITE_TILE { return vminq_f16(sum, max); });
  }
  Half* result = tile.result;
  const std::size_t step = tile.result_step * sizeof(Half);
#pragma GCC unroll 8
  for (std::size_t p = 0; p < Pixels; ++p) {
    if constexpr (Parts == 2) {
      asm volatile("stp %q0, %q1, [%2]"
                   :
                   : "w"(sums[p][0]), "w"(sums[p][1]), "r"(result)
                   : "memory");
    } else {
      vst1q_f16(reinterpret_cast<__fp16*>(result), sums[p][0]);
    }
    result = reinterpret_cast<Half*>(reinterpret_cast<std::byte*>(result) + step);
  }
}

using MultiplyTile = void (*)(const HalfTile&);

// By pixels, less one: of a half of a panel, and of all of it.
constexpr std::array<MultiplyTile, kPixels> kMultiplyHalf = {
    multiply_tile<1, 1>, multiply_tile<2, 1>, multiply_tile<3, 1>, multiply_tile<4, 1>,
    multiply_tile<5, 1>, multiply_tile<6, 1>, multiply_tile<7, 1>, multiply_tile<8, 1>};
constexpr std::array<MultiplyTile, kPixels> kMultiply = {
    multiply_tile<1, 2>, multiply_tile<2, 2>, multiply_tile<3, 2>, multiply_tile<4, 2>,
    multiply_tile<5, 2>, multiply_tile<6, 2>, multiply_tile<7, 2>, multiply_tile<8, 2>};

int flags_of(const HalfStore& store) {
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  return (store.min == -kInfinite ? 0 : kHasMin) | (store.max == kInfinite ? 0 : kHasMax);
}

// Runs of a window: its rows if the pixels under one lie side by side, or all of its taps.
struct WindowRuns {
  std::size_t of_row;
  std::size_t length;

  WindowRuns(const SlidingWindow& window, std::size_t channels, bool is_contiguous) {
    const std::size_t columns = window.kernel[1];
    of_row = is_contiguous && (window.dilations[1] == 1 || columns == 1) ? 1 : columns;
    length = columns / of_row * channels;
  }
};

// Pixels of a tile whose windows in the padding are copied to kCopies numbers.
std::size_t most_pixels(const SlidingWindow& window, const WindowRuns& runs, std::size_t step) {
  const std::size_t all = window.kernel[0] * runs.of_row;
  std::size_t pixels = kPixels;
  while (pixels > 0 && all * ((pixels - 1) * step + runs.length) > kCopies) { --pixels; }
  return pixels;
}

void copy(const Half* from, std::size_t count, Half* to) { std::copy_n(from, count, to); }
void copy(const float* from, std::size_t count, Half* to) { narrow(from, to, count); }

template <typename Source, typename Result>
class Run {
 public:
  Run(const HalfConvolution& convolution, const Image<const Source>& source,
      const Image<Result>& result, RowRange rows, std::size_t num_threads)
      : convolution_(convolution),
        source_(source),
        result_(result),
        rows_(rows),
        runs_(convolution.window, source.channels, source.pixel_stride == source.channels),
        step_(convolution.window.strides[1] * source.pixel_stride),
        depth_(convolution.window.kernel[0] * convolution.window.kernel[1] * source.channels),
        panels_(divide_up(result.channels, kPanel)),
        flags_(flags_of(convolution.store)) {
    const bool copies = kCopiesAll || convolution.window.has_padding();
    const std::size_t most = copies ? most_pixels(convolution.window, runs_, step_) : kPixels;
    tiles_of_line_ = divide_up(result.columns, most);
    const std::size_t tiles = rows.count * tiles_of_line_;
    const std::size_t cached = kCached / (depth_ * kPanel * sizeof(Half));
    panel_parts_ = divide_up(panels_, std::max(cached, kFewestPanels));
    tile_parts_ = 1;
    if (num_threads > 1) {
      const std::size_t wanted = num_threads * kPartsPerThread;
      tile_parts_ = std::clamp<std::size_t>(divide_up(wanted, panel_parts_), 1, tiles);
      panel_parts_ = std::clamp(divide_up(wanted, tile_parts_), panel_parts_, panels_);
    }
  }

  std::size_t num_parts() const { return panel_parts_ * tile_parts_; }

  void run(std::size_t part) const {
    const Range panels = split(panels_, panel_parts_, part / tile_parts_);
    const Range tiles = split(rows_.count * tiles_of_line_, tile_parts_, part % tile_parts_);
    Scratch scratch;
    for (std::size_t i = tiles.first; i < tiles.first + tiles.count; ++i) {
      const Range pixels = split(result_.columns, tiles_of_line_, i % tiles_of_line_);
      make(rows_.first + i / tiles_of_line_, pixels, panels, scratch);
    }
  }

 private:
  static constexpr bool kCopiesAll = std::is_same_v<Source, float>;
  static constexpr bool kMakesHalves = std::is_same_v<Result, Half>;

  struct Scratch {
    alignas(64) float sums[kPixels * kPanel];
    alignas(64) Half edge[kPixels * kPanel];
    alignas(64) Half addend[kPixels * kPanel];
    alignas(64) Half copies[kCopies];
    const Half* runs[kMostRuns];
  };

  // Makes pixels of a row, by some panels.
  void make(std::size_t row, Range pixels, Range panels, Scratch& scratch) const {
    HalfTile tile{};
    tile.runs = scratch.runs;
    tile.run_length = runs_.length;
    tile.source_step = step_;
    tile.sums = scratch.sums;
    tile.min = convolution_.store.min;
    tile.max = convolution_.store.max;
    tile.flags = flags_;
    const std::size_t skipped = find_runs(row, pixels, tile, scratch);
    Result* const result = result_.row(row) + pixels.first * result_.pixel_stride;
    const Image<const Half>* const image = convolution_.store.addend;
    const Half* const addend =
        image == nullptr ? nullptr : image->row(row) + pixels.first * image->pixel_stride;
    for (std::size_t panel = panels.first; panel < panels.first + panels.count; ++panel) {
      const std::size_t channel = panel * kPanel;
      const std::size_t width = std::min(kPanel, result_.channels - channel);
      const bool is_half = width <= kLanes;
      const std::size_t made = is_half ? kLanes : kPanel;
      const MultiplyTile multiply = (is_half ? kMultiplyHalf : kMultiply)[pixels.count - 1];
      tile.filter = convolution_.filter + (panel * depth_ + skipped) * kPanel;
      tile.bias = convolution_.store.bias + channel;
      if constexpr (!kMakesHalves) {
        multiply(tile);
        keep_floats(tile, result + channel, pixels.count, width, made);
      } else {
        tile.result = result + channel;
        tile.result_step = result_.pixel_stride;
        if (addend != nullptr) {
          tile.addend = addend + channel;
          tile.addend_step = image->pixel_stride;
        }
        if (width == made) {
          multiply(tile);
        } else {
          multiply_edge(multiply, tile, pixels.count, width, made, scratch);
        }
      }
    }
  }

  // Finds the windows of pixels in a row in place, or copies them where they reach into the
  // padding. Returns the depth before the first run.
  std::size_t find_runs(std::size_t row, Range pixels, HalfTile& tile, Scratch& scratch) const {
    const SlidingWindow& window = convolution_.window;
    const auto to_signed = [](std::size_t value) { return static_cast<std::int64_t>(value); };
    const std::int64_t stride = to_signed(source_.pixel_stride);
    const std::int64_t limit =
        to_signed(source_.columns - 1) * stride + to_signed(source_.channels);
    const std::int64_t size = to_signed((pixels.count - 1) * step_ + runs_.length);
    Half* copies = scratch.copies;
    std::size_t skipped = 0;
    for (std::size_t tap = 0; tap < window.kernel[0]; ++tap) {
      const Source* const from = row_under(window, source_, row, tap);
      if (from == nullptr) {
        if (tile.num_runs == 0) { skipped += runs_.of_row * runs_.length; }
        continue;
      }
      for (std::size_t i = 0; i < runs_.of_row; ++i) {
        const std::int64_t begin =
            (window.place(1, pixels.first) + to_signed(i * window.dilations[1])) * stride;
        const Half*& run = scratch.runs[tile.num_runs++];
        if constexpr (!kCopiesAll) {
          if (begin >= 0 && begin + size <= limit) {
            run = from + begin;
            continue;
          }
        }
        const std::int64_t left = std::clamp<std::int64_t>(begin, 0, limit);
        const std::int64_t right = std::clamp<std::int64_t>(begin + size, 0, limit);
        run = copies;
        Half* const end = copies + size;
        copies = std::fill_n(copies, std::min(left - begin, size), Half{0});
        copy(from + left, static_cast<std::size_t>(right - left), copies);
        std::fill(copies + (right - left), end, Half{0});
        copies = end;
      }
    }
    return skipped;
  }

  void keep_floats(const HalfTile& tile, Result* result, std::size_t num_pixels, std::size_t width,
                   std::size_t made) const {
    for (std::size_t p = 0; p < num_pixels; ++p) {
      for (std::size_t i = 0; i < width; ++i) {
        const float sum = tile.sums[p * made + i];
        result[p * result_.pixel_stride + i] = std::min(std::max(sum, tile.min), tile.max);
      }
    }
  }

  // Where a panel reaches beyond the last channel, its pixels are made elsewhere.
  static void multiply_edge(MultiplyTile multiply, HalfTile tile, std::size_t num_pixels,
                            std::size_t width, std::size_t made, Scratch& scratch) {
    const HalfTile given = tile;
    tile.result = scratch.edge;
    tile.result_step = tile.addend_step = made;
    if (given.addend != nullptr) {
      tile.addend = scratch.addend;
      for (std::size_t p = 0; p < num_pixels; ++p) {
        std::copy_n(given.addend + p * given.addend_step, width, scratch.addend + p * made);
        std::fill_n(scratch.addend + p * made + width, made - width, Half{0});
      }
    }
    multiply(tile);
    for (std::size_t p = 0; p < num_pixels; ++p) {
      std::copy_n(scratch.edge + p * made, width, given.result + p * given.result_step);
    }
  }

  const HalfConvolution& convolution_;
  const Image<const Source>& source_;
  const Image<Result>& result_;
  const RowRange rows_;
  const WindowRuns runs_;
  const std::size_t step_;   // numbers from a window to the next one
  const std::size_t depth_;  // of all of a window
  const std::size_t panels_;
  const int flags_;
  std::size_t tiles_of_line_;
  std::size_t panel_parts_;
  std::size_t tile_parts_;
};

template <typename Source, typename Result>
void compute(const HalfConvolution& convolution, const Image<const Source>& source,
             const Image<Result>& result, RowRange rows, pthreadpool_t threads) {
  const auto& kernel = convolution.window.kernel;
  const std::size_t depth = kernel[0] * kernel[1] * source.channels;
  const std::size_t products = rows.count * result.columns * result.channels * depth;
  const std::size_t num_threads = threads_worthwhile(products, threads);
  run_parts(Run<Source, Result>(convolution, source, result, rows, num_threads), num_threads,
            threads);
}

}  // namespace

bool convolves_halves(const HalfConvolution& convolution, std::size_t channels) {
  const SlidingWindow& window = convolution.window;
  const WindowRuns runs(window, channels, true);
  const std::size_t step = window.strides[1] * channels;
  return window.kernel[0] * runs.of_row <= kMostRuns && most_pixels(window, runs, step) > 0;
}

template <typename Source, typename Result>
void convolve_halves(const HalfConvolution& convolution, const Image<const Source>& source,
                     const Image<Result>& result, RowRange rows, pthreadpool_t threads) {
  over_pixels(convolution, source, result, rows,
              [threads](const auto& each, const auto& from, const auto& to, RowRange some) {
                compute(each, from, to, some, threads);
              });
}

template void convolve_halves(const HalfConvolution&, const Image<const Half>&, const Image<Half>&,
                              RowRange, pthreadpool_t);
template void convolve_halves(const HalfConvolution&, const Image<const float>&, const Image<Half>&,
                              RowRange, pthreadpool_t);
template void convolve_halves(const HalfConvolution&, const Image<const Half>&, const Image<float>&,
                              RowRange, pthreadpool_t);

}  // namespace arenite
#endif
