// Depthwise convolutions of 8-bit integers on x86-64, whose sums stay in registers until they are
// bytes again. Include it as int8_vectors.hpp.
#pragma once

#include <algorithm>

#include "kernels/convolution/int8_vectors.hpp"
#include "kernels/parallel.hpp"

namespace arenite {

namespace {

// Some rows of the window are added up together. A *group* has the bytes of that many rows and of
// the channels of a vector, interleaved as products take them, in as many vectors as there are of
// sums.
//
// `Vectors` has, beside what int8_vectors.hpp states:
//
//     Row         the bytes of one row
//     kRows       of a group
//     kSums       vectors of sums
//     kPixels     that are made together, as many as there are registers for
//     kChannels

constexpr std::size_t kWeightBytes = std::size_t{8} * 1024;
constexpr std::size_t kSourceBytes = std::size_t{16} * 1024;
constexpr std::size_t kMostKernel = 16;

template <typename Vectors>
struct Sizes {
  static constexpr std::size_t kGroup = Vectors::kSums * sizeof(typename Vectors::Vector);
  static constexpr std::size_t kLanes = sizeof(typename Vectors::Vector) / sizeof(std::int32_t);
  // Groups of weights, and of the source for a run of pixels.
  static constexpr std::size_t kMostWeights = kWeightBytes / kGroup;
  static constexpr std::size_t kMostSource = kSourceBytes / kGroup;

  static bool fits(const SlidingWindow& window) {
    const std::size_t groups = divide_up(window.kernel[0], Vectors::kRows);
    return window.kernel[0] <= kMostKernel && window.kernel[1] <= kMostKernel &&
           groups * window.kernel[1] <= kMostWeights && window.dilations[1] <= kMostSource &&
           window.extent(1) * groups <= kMostSource;
  }
};

template <typename Vectors>
struct alignas(64) Stack {
  std::uint8_t weights[Sizes<Vectors>::kMostWeights][Sizes<Vectors>::kGroup];
  std::uint8_t source[Sizes<Vectors>::kMostSource][Sizes<Vectors>::kGroup];
  std::int32_t start[Vectors::kSums][Sizes<Vectors>::kLanes];
  float scales[Vectors::kSums][Sizes<Vectors>::kLanes];
};

template <typename Vectors>
class Maker {
  using Vector = typename Vectors::Vector;
  using Row = typename Vectors::Row;
  static constexpr std::size_t kRows = Vectors::kRows;
  static constexpr std::size_t kSums = Vectors::kSums;
  static constexpr std::size_t kGroup = Sizes<Vectors>::kGroup;
  static constexpr std::size_t kLanes = Sizes<Vectors>::kLanes;

 public:
  ARENITE_FOR_VECTORS Maker(const Int8DepthwiseRows& given, Stack<Vectors>& stack)
      : given_(given),
        store_(given.convolution.store),
        window_(given.convolution.window),
        stack_(stack),
        groups_(divide_up(window_.kernel[0], kRows)),
        mask_(~std::uint64_t{0} >> (64 - given.num_channels)) {
    run_ = (Sizes<Vectors>::kMostSource / groups_ - window_.extent(1)) / window_.strides[1] + 1;
    const std::int8_t* filter = given.convolution.filter + given.channel;
    const std::int32_t zero = given.convolution.filter_zero_point;
    for (std::size_t j = 0; j < window_.kernel[1]; ++j) {
      for (std::size_t g = 0; g < groups_; ++g) {
        Row rows[kRows];
        for (std::size_t i = 0; i < kRows; ++i) {
          const std::size_t row = g * kRows + i;
          rows[i] = row < window_.kernel[0]
                        ? Vectors::load_masked(
                              mask_, filter + (row * window_.kernel[1] + j) * given.result.channels)
                        : Vectors::bytes(zero);
        }
        Vectors::interleave_weights(rows, zero, stack_.weights[j * groups_ + g]);
      }
    }
    // All of a sum that the source does not change, and the scales, in the order of the sums.
    for (std::size_t v = 0; v < kSums; ++v) {
      Vector sum = Vectors::all(0);
      for (std::size_t t = 0; t < window_.kernel[1] * groups_; ++t) {
        const Vector weights = Vectors::load(stack_.weights[t] + v * sizeof(Vector));
        Vectors::add_products(sum, Vectors::ones(), weights);
      }
      alignas(64) std::uint32_t sums[kLanes];
      Vectors::store(sum, sums);
      for (std::size_t i = 0; i < kLanes; ++i) {
        const std::size_t channel = Vectors::channel_of(v, i);
        const bool is_one = channel < given.num_channels;
        const std::int32_t bias =
            is_one && store_.bias != nullptr ? store_.bias[given.channel + channel] : 0;
        stack_.start[v][i] = static_cast<std::int32_t>(
            static_cast<std::uint32_t>(bias) - sums[i] * static_cast<std::uint32_t>(given.zero));
        stack_.scales[v][i] = is_one ? store_.scales[given.channel + channel] : 0.0f;
      }
    }
  }

  ARENITE_FOR_VECTORS void make() {
    const std::size_t columns = given_.result.columns;
    for (std::size_t row = given_.rows.first; row < given_.rows.first + given_.rows.count; ++row) {
      for (std::size_t column = 0; column < columns; column += run_) {
        make_run(row, column, std::min(run_, columns - column));
      }
    }
  }

 private:
  // The groups that the windows of some pixels share.
  ARENITE_FOR_VECTORS ARENITE_INLINE void gather(std::size_t row, std::int64_t left,
                                                 std::size_t count) {
    const Row flips = Vectors::bytes(given_.flip);
    Row zeros[kRows];
    std::fill_n(zeros, kRows, Vectors::bytes(given_.zero));
    const std::size_t stride = given_.source.pixel_stride;
    const PixelSpan inside = inside_of(left, count, given_.source.columns);
    for (std::size_t g = 0; g < groups_; ++g) {
      // For rows in the padding, and for those beyond the window, whose weights are zero.
      alignas(64) std::uint8_t nothing[64];
      std::fill_n(nothing, sizeof nothing, static_cast<std::uint8_t>(given_.zero ^ given_.flip));
      const std::uint8_t* rows[kRows];
      std::size_t steps[kRows];
      for (std::size_t i = 0; i < kRows; ++i) {
        const std::size_t index = g * kRows + i;
        const std::uint8_t* from =
            index < window_.kernel[0] ? row_under(window_, given_.source, row, index) : nullptr;
        steps[i] = from == nullptr ? 0 : stride;
        rows[i] = from == nullptr ? nothing
                                  : from + given_.channel +
                                        (left + static_cast<std::int64_t>(inside.first)) *
                                            static_cast<std::int64_t>(stride);
      }
      for (std::size_t x = 0; x < count; ++x) {
        std::uint8_t* to = stack_.source[x * groups_ + g];
        if (x - inside.first >= inside.count) {
          Vectors::interleave(zeros, to);
          continue;
        }
        Row bytes[kRows];
#pragma GCC unroll 4
        for (std::size_t i = 0; i < kRows; ++i) {
          bytes[i] = Vectors::exclusive_or(Vectors::load_masked(mask_, rows[i]), flips);
          rows[i] += steps[i];
        }
        Vectors::interleave(bytes, to);
      }
    }
  }

  ARENITE_FOR_VECTORS void make_run(std::size_t row, std::size_t column, std::size_t count) {
    constexpr std::size_t kPixels = Vectors::kPixels;
    gather(row, window_.place(1, column), (count - 1) * window_.strides[1] + window_.extent(1));
    std::uint8_t* to =
        given_.result.row(row) + column * given_.result.pixel_stride + given_.channel;
    const std::size_t stride = given_.result.pixel_stride;
    std::size_t p = 0;
    for (; p + kPixels <= count; p += kPixels) { make_pixels<kPixels>(p, to + p * stride); }
    for (; p < count; ++p) { make_pixels<1>(p, to + p * stride); }
  }

  template <std::size_t Pixels>
  ARENITE_FOR_VECTORS ARENITE_INLINE void make_pixels(std::size_t first, std::uint8_t* to) {
    Vector sums[Pixels][kSums];
#pragma GCC unroll 8
    for (std::size_t p = 0; p < Pixels; ++p) {
#pragma GCC unroll 4
      for (std::size_t v = 0; v < kSums; ++v) { sums[p][v] = Vectors::load(stack_.start[v]); }
    }
    const std::size_t step = window_.strides[1] * groups_ * kGroup;
    const std::uint8_t* weights = stack_.weights[0];
    for (std::size_t j = 0; j < window_.kernel[1]; ++j) {
      const std::uint8_t* from =
          stack_.source[(first * window_.strides[1] + j * window_.dilations[1]) * groups_];
      for (std::size_t g = 0; g < groups_; ++g) {
#pragma GCC unroll 4
        for (std::size_t v = 0; v < kSums; ++v) {
          const Vector factors = Vectors::load(weights + v * sizeof(Vector));
#pragma GCC unroll 8
          for (std::size_t p = 0; p < Pixels; ++p) {
            const Vector source = Vectors::load(from + p * step + v * sizeof(Vector));
            Vector sum = sums[p][v];  // of its own, or GCC 12 keeps sums in memory
            Vectors::add_products(sum, source, factors);
            sums[p][v] = sum;
          }
        }
        weights += kGroup;
        from += kGroup;
      }
    }
    const Limits<Vectors> limits(store_);
    const std::size_t stride = given_.result.pixel_stride;
#pragma GCC unroll 8
    for (std::size_t p = 0; p < Pixels; ++p) {
#pragma GCC unroll 4
      for (std::size_t v = 0; v < kSums; ++v) {
        const auto product = Vectors::product(sums[p][v], Vectors::load_floats(stack_.scales[v]));
        sums[p][v] = Vectors::nearest(Vectors::smaller(product, limits.high));
      }
      Vectors::store_masked(mask_, to + p * stride, Vectors::bytes_of(sums[p], limits));
    }
  }

  const Int8DepthwiseRows& given_;
  const QuantisedStore& store_;
  const SlidingWindow& window_;
  Stack<Vectors>& stack_;
  std::size_t groups_;
  std::uint64_t mask_;
  std::size_t run_;  // pixels whose groups fit the stack
};

template <typename Vectors>
ARENITE_FOR_VECTORS void make_with(const Int8DepthwiseRows& given) {
  Stack<Vectors> stack;
  Maker<Vectors>(given, stack).make();
}

}  // namespace

}  // namespace arenite
