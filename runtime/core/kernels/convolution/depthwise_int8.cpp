#include "depthwise_int8.hpp"

#include <algorithm>
#include <type_traits>

#include "kernels/convolution/int8_kernel.hpp"
#include "kernels/parallel.hpp"
#include "kernels/processor.hpp"

namespace arenite {

namespace {

// Output channels whose sums are added up at once.
constexpr std::size_t kBlock = 32;

// Adds the products of one tap. Sums wrap.
ARENITE_INLINE void add_tap(const std::uint8_t* __restrict source,
                            const std::int8_t* __restrict weights, std::size_t count,
                            std::uint8_t flip, std::int32_t zero, std::int32_t weight_zero,
                            std::uint32_t* __restrict sums) {
  for (std::size_t c = 0; c < count; ++c) {
    const auto difference = static_cast<std::int16_t>((source[c] ^ flip) - zero);
    const auto factor = static_cast<std::int16_t>(weights[c] - weight_zero);
    sums[c] += static_cast<std::uint32_t>(difference * factor);
  }
}

// Sums of `count` output channels of one pixel, of the taps that lie inside.
ARENITE_INLINE void add_up(const Int8DepthwiseRows& given, std::size_t row, std::size_t column,
                           std::size_t channel, std::size_t count, std::uint32_t* sums) {
  const auto& window = given.convolution.window;
  const std::size_t multiplier = given.multiplier();
  const std::size_t outputs = given.result.channels;
  const std::int32_t* bias = given.convolution.store.bias;
  const std::int32_t weight_zero = given.convolution.filter_zero_point;
  for (std::size_t c = 0; c < count; ++c) {
    sums[c] = bias == nullptr ? 0 : static_cast<std::uint32_t>(bias[channel + c]);
  }
  for (std::size_t i = 0; i < window.kernel[0]; ++i) {
    const std::uint8_t* from = row_under(window, given.source, row, i);
    if (from == nullptr) { continue; }
    for (std::size_t j = 0; j < window.kernel[1]; ++j) {
      const std::int64_t x =
          window.place(1, column) + static_cast<std::int64_t>(j) * window.dilations[1];
      if (x < 0 || x >= static_cast<std::int64_t>(given.source.columns)) { continue; }
      const std::uint8_t* pixel = from + static_cast<std::size_t>(x) * given.source.pixel_stride;
      const std::int8_t* weights =
          given.convolution.filter + (i * window.kernel[1] + j) * outputs + channel;
      if (multiplier != 1) {
        for (std::size_t c = 0; c < count; ++c) {
          add_tap(pixel + (channel + c) / multiplier, weights + c, 1, given.flip, given.zero,
                  weight_zero, sums + c);
        }
      } else if (count == kBlock) {
        add_tap(pixel + channel, weights, kBlock, given.flip, given.zero, weight_zero, sums);
      } else {
        add_tap(pixel + channel, weights, count, given.flip, given.zero, weight_zero, sums);
      }
    }
  }
}

ARENITE_INLINE void make(const Int8DepthwiseRows& given) {
  const std::size_t first = given.channel * given.multiplier();
  const std::size_t end = first + given.num_channels * given.multiplier();
  alignas(64) std::uint32_t sums[kBlock];
  for (std::size_t row = given.rows.first; row < given.rows.first + given.rows.count; ++row) {
    std::uint8_t* to = given.result.row(row);
    for (std::size_t column = 0; column < given.result.columns; ++column) {
      for (std::size_t channel = first; channel < end; channel += kBlock) {
        const std::size_t count = std::min(kBlock, end - channel);
        add_up(given, row, column, channel, count, sums);
        requantise(given.convolution.store, given.convolution.store.scales + channel,
                   reinterpret_cast<std::int32_t*>(sums), count,
                   to + column * given.result.pixel_stride + channel);
      }
    }
  }
}

template <typename T>
void convolve_any(const Int8DepthwiseConvolution& convolution, const Image<const T>& source,
                  const Image<T>& result, RowRange rows, pthreadpool_t threads) {
  constexpr bool kIsSigned = std::is_signed_v<T>;
  const auto from = as_bytes(source);
  const auto to = as_bytes(result);
  const Int8DepthwiseRows all{convolution,
                              from,
                              to,
                              rows,
                              0,
                              source.channels,
                              static_cast<std::uint8_t>(kIsSigned ? 0x80 : 0),
                              convolution.source_zero_point + (kIsSigned ? 128 : 0)};
  const Int8DepthwiseKernel* found = nullptr;
#if defined(ARENITE_X86)
  found = int8_depthwise_for_vnni(all);
  found = found == nullptr ? int8_depthwise_for_avx2(all) : found;
#elif defined(ARENITE_ARM64)
  found = int8_depthwise_for_neon(all);
#endif
  const Int8DepthwiseKernel kernel = found == nullptr ? int8_depthwise_for_any() : *found;
  // Some rows of a block of channels at a time.
  const std::size_t blocks = divide_up(source.channels, kernel.channels);
  const auto& window = convolution.window;
  const std::size_t cost = result.columns * std::min(kernel.channels, source.channels) *
                           window.kernel[0] * window.kernel[1] / 8;
  parallel(threads, blocks * rows.count, cost, [&](std::size_t first, std::size_t count) {
    for (std::size_t i = first; i < first + count;) {
      const std::size_t row = i % rows.count;
      const std::size_t channel = i / rows.count * kernel.channels;
      const RowRange some{rows.first + row, std::min(rows.count - row, first + count - i)};
      kernel.make({convolution, from, to, some, channel,
                   std::min(kernel.channels, source.channels - channel), all.flip, all.zero});
      i += some.count;
    }
  });
}

}  // namespace

Int8DepthwiseKernel int8_depthwise_for_any() {
  // All channels of a pixel, and then of the next.
  return {std::size_t{1} << 16,
          [](const Int8DepthwiseRows& given) { with_widest_vectors([given] { make(given); }); }};
}

void convolve_depthwise(const Int8DepthwiseConvolution& convolution,
                        const Image<const std::int8_t>& source, const Image<std::int8_t>& result,
                        RowRange rows, pthreadpool_t threads) {
  convolve_any(convolution, source, result, rows, threads);
}

void convolve_depthwise(const Int8DepthwiseConvolution& convolution,
                        const Image<const std::uint8_t>& source, const Image<std::uint8_t>& result,
                        RowRange rows, pthreadpool_t threads) {
  convolve_any(convolution, source, result, rows, threads);
}

}  // namespace arenite
