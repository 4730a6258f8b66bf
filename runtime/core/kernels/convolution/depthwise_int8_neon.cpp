// Depthwise convolutions of 8-bit integers for 64-bit ARM: sums stay in registers until they are
// bytes again.
#include "kernels/processor.hpp"

#if defined(ARENITE_ARM64)

#include "kernels/convolution/windows_of_nine_neon.hpp"

namespace arenite {

namespace {

// The largest window of a depthwise convolution whose weights are widened for all pixels of a row.
constexpr std::size_t kMostTaps = 64;

// Depthwise convolutions: 8 or 16 channels of some pixels together, each tap as 16-bit integers
// less their zero points. `Width` and `Stride` are those of the window where they are known, so
// that pixels share what they read; else 0.
template <bool IsSigned, std::size_t Halves, std::size_t Width, std::size_t Stride>
class DepthwiseRow {
  static constexpr std::size_t kPixels = 4;
  static constexpr std::size_t kSums = 2 * Halves;
  static constexpr std::size_t kChannels = 8 * Halves;
  using Sums = int32x4_t[kSums];

 public:
  ARENITE_INLINE DepthwiseRow(const Int8DepthwiseRows& given, std::size_t channel)
      : given_(given),
        window_(given.convolution.window),
        requantised_(given.convolution.store),
        channel_(channel),
        zero_(given.zero) {
    const std::size_t taps = window_.kernel[0] * window_.kernel[1];
    const int16x8_t zero =
        vdupq_n_s16(static_cast<std::int16_t>(given.convolution.filter_zero_point));
    for (std::size_t t = 0; t < taps; ++t) {
      const std::int8_t* from = given.convolution.filter + t * given.result.channels + channel;
#pragma GCC unroll 2
      for (std::size_t h = 0; h < Halves; ++h) {
        vst1q_s16(weights_[t] + 8 * h, vsubq_s16(vmovl_s8(vld1_s8(from + 8 * h)), zero));
      }
    }
    const QuantisedStore& store = given.convolution.store;
    std::memcpy(scales_, store.scales + channel, sizeof scales_);
    if (store.bias == nullptr) {
      std::memset(bias_, 0, sizeof bias_);
    } else {
      std::memcpy(bias_, store.bias + channel, sizeof bias_);
    }
    std::memset(nothing_, given.zero ^ given.flip, sizeof nothing_);
  }

  // The last pixels may be made twice, to the same bytes.
  void make(std::size_t row) const {
    const std::size_t columns = given_.result.columns;
    Rows rows;
    rows.count = 0;
    for (std::size_t i = 0; i < window_.kernel[0]; ++i) {
      const std::uint8_t* from = row_under(window_, given_.source, row, i);
      if (from == nullptr) { continue; }
      rows.from[rows.count] = from + channel_;
      rows.weights[rows.count++] = weights_[i * window_.kernel[1]];
    }
    std::uint8_t* to = given_.result.row(row) + channel_;
    if (columns < kPixels) {
      for (std::size_t c = 0; c < columns; ++c) { make_pixels<1, true>(rows, c, to); }
      return;
    }
    for (std::size_t c = 0; c < columns; c += kPixels) {
      const std::size_t column = std::min(c, columns - kPixels);
      const std::int64_t left = window_.place(1, column);
      const std::size_t width = (kPixels - 1) * window_.strides[1] + window_.extent(1);
      if (left >= 0 && static_cast<std::size_t>(left) + width <= given_.source.columns) {
        make_pixels<kPixels, false>(rows, column, to);
      } else {
        make_pixels<kPixels, true>(rows, column, to);
      }
    }
  }

 private:
  // The rows under a window that lie inside the source.
  struct Rows {
    const std::uint8_t* from[kMostTaps];
    const std::int16_t* weights[kMostTaps];
    std::size_t count;
  };

  ARENITE_INLINE void start(Sums& sums) const {
#pragma GCC unroll 4
    for (std::size_t v = 0; v < kSums; ++v) { sums[v] = vld1q_s32(bias_ + 4 * v); }
  }

  struct Widened {
    int16x8_t halves[Halves];
  };

  ARENITE_INLINE Widened widened(const std::uint8_t* from) const {
    Widened result;
#pragma GCC unroll 2
    for (std::size_t h = 0; h < Halves; ++h) {
      if constexpr (IsSigned) {
        const int8x8_t bytes = vld1_s8(reinterpret_cast<const std::int8_t*>(from) + 8 * h);
        result.halves[h] = vsubl_s8(bytes, vdup_n_s8(static_cast<std::int8_t>(zero_ - 128)));
      } else {
        const auto zero = vdup_n_u8(static_cast<std::uint8_t>(zero_));
        result.halves[h] = vreinterpretq_s16_u16(vsubl_u8(vld1_u8(from + 8 * h), zero));
      }
    }
    return result;
  }

  ARENITE_INLINE static void add(const Widened& source, const Widened& weights, Sums& sums) {
#pragma GCC unroll 2
    for (std::size_t h = 0; h < Halves; ++h) {
      sums[2 * h] =
          vmlal_s16(sums[2 * h], vget_low_s16(source.halves[h]), vget_low_s16(weights.halves[h]));
      sums[2 * h + 1] = vmlal_high_s16(sums[2 * h + 1], source.halves[h], weights.halves[h]);
    }
  }

  ARENITE_INLINE static Widened loaded(const std::int16_t* from) {
    Widened result;
#pragma GCC unroll 2
    for (std::size_t h = 0; h < Halves; ++h) { result.halves[h] = vld1q_s16(from + 8 * h); }
    return result;
  }

  ARENITE_INLINE void store(const Sums& sums, std::uint8_t* to) const {
    if constexpr (Halves == 2) {
      int32x4_t some[1][kParts] = {{sums[0], sums[1], sums[2], sums[3]}};
      float32x4_t scales[kParts];
      load_panel(scales_, scales);
      uint8x16_t bytes[1];
      requantised_.make<Bounds::any>(some, scales, bytes);
      vst1q_u8(to, bytes[0]);
    } else {
      vst1_u8(to, vmovn_u16(vreinterpretq_u16_u8(requantised_.eight(sums, scales_))));
    }
  }

  // `HasEdge`: columns of the windows may lie outside the source.
  template <std::size_t Pixels, bool HasEdge>
  ARENITE_INLINE void make_pixels(const Rows& rows, std::size_t column, std::uint8_t* to) const {
    Sums sums[Pixels];
#pragma GCC unroll 4
    for (std::size_t p = 0; p < Pixels; ++p) { start(sums[p]); }
    const auto pixel = static_cast<std::int64_t>(given_.source.pixel_stride);
    const std::int64_t left = window_.place(1, column);
    for (std::size_t i = 0; i < rows.count; ++i) {
      const std::uint8_t* from = rows.from[i];
      const std::int16_t* weights = rows.weights[i];
      const auto at = [&](std::int64_t x) {
        return !HasEdge || is_column(x) ? from + x * pixel : nothing_;
      };
      if constexpr (Width != 0) {
        Widened factors[Width];
#pragma GCC unroll 3
        for (std::size_t j = 0; j < Width; ++j) { factors[j] = loaded(weights + j * kChannels); }
#pragma GCC unroll 9
        for (std::size_t x = 0; x < (Pixels - 1) * Stride + Width; ++x) {
          const Widened source = widened(at(left + static_cast<std::int64_t>(x)));
#pragma GCC unroll 4
          for (std::size_t p = 0; p < Pixels; ++p) {
            if (x >= p * Stride && x - p * Stride < Width) {
              add(source, factors[x - p * Stride], sums[p]);
            }
          }
        }
      } else {
        const std::int64_t stride = window_.strides[1];
        std::int64_t x = left;
        for (std::size_t j = 0; j < window_.kernel[1]; ++j) {
          const Widened factors = loaded(weights + j * kChannels);
#pragma GCC unroll 4
          for (std::size_t p = 0; p < Pixels; ++p) {
            add(widened(at(x + static_cast<std::int64_t>(p) * stride)), factors, sums[p]);
          }
          x += window_.dilations[1];
        }
      }
    }
    to += column * given_.result.pixel_stride;
#pragma GCC unroll 4
    for (std::size_t p = 0; p < Pixels; ++p) {
      store(sums[p], to);
      to += given_.result.pixel_stride;
    }
  }

  ARENITE_INLINE bool is_column(std::int64_t x) const {
    return static_cast<std::size_t>(x) < given_.source.columns;
  }

  const Int8DepthwiseRows& given_;
  const SlidingWindow& window_;
  Requantised requantised_;
  std::size_t channel_;
  std::int32_t zero_;
  std::int16_t weights_[kMostTaps][kChannels];
  std::int32_t bias_[kChannels];
  float scales_[kChannels];
  std::uint8_t nothing_[kChannels];  // a pixel of the padding
};

template <bool IsSigned, std::size_t Halves>
void make_channels(const Int8DepthwiseRows& given, std::size_t channel) {
  const auto& window = given.convolution.window;
  const auto rows = [&](const auto& maker) {
    for (std::size_t i = 0; i < given.rows.count; ++i) { maker.make(given.rows.first + i); }
  };
  const bool is_known = window.dilations[1] == 1 && window.kernel[1] == 3 && window.strides[1] <= 2;
  if constexpr (Halves == 2) {
    if (is_known && window.kernel[0] == 3 && given.convolution.filter_zero_point == 0) {
      if (has_dot_products()) {
        windows_of_nine::make<IsSigned, windows_of_nine::DotTaps>(given, channel);
        return;
      }
      if (!windows_of_nine::Weights(given, channel).has_least()) {
        windows_of_nine::make<IsSigned, windows_of_nine::ProductTaps>(given, channel);
        return;
      }
    }
  }
  if (is_known && window.strides[1] == 1) {
    rows(DepthwiseRow<IsSigned, Halves, 3, 1>(given, channel));
  } else if (is_known) {
    rows(DepthwiseRow<IsSigned, Halves, 3, 2>(given, channel));
  } else {
    rows(DepthwiseRow<IsSigned, Halves, 0, 0>(given, channel));
  }
}

// The last channels may be made twice, to the same bytes.
template <bool IsSigned>
void make_depthwise(const Int8DepthwiseRows& given) {
  const std::size_t end = given.channel + given.num_channels;
  std::size_t channel = given.channel;
  for (; channel + 16 <= end; channel += 16) { make_channels<IsSigned, 2>(given, channel); }
  for (; channel + 8 <= end; channel += 8) { make_channels<IsSigned, 1>(given, channel); }
  if (channel < end) { make_channels<IsSigned, 1>(given, end - 8); }
}

}  // namespace

const Int8DepthwiseKernel* int8_depthwise_for_neon(const Int8DepthwiseRows& rows) {
  // All channels of some rows.
  static constexpr Int8DepthwiseKernel kSigned{std::size_t{1} << 16, make_depthwise<true>};
  static constexpr Int8DepthwiseKernel kUnsigned{std::size_t{1} << 16, make_depthwise<false>};
  const auto& window = rows.convolution.window;
  const bool fits = rows.multiplier() == 1 && rows.source.channels >= 8 &&
                    window.kernel[0] * window.kernel[1] <= kMostTaps;
  return !fits ? nullptr : rows.flip != 0 ? &kSigned : &kUnsigned;
}

}  // namespace arenite

#endif
