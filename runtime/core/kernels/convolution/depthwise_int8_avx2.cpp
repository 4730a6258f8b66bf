// Depthwise convolutions for x86-64 with sums of two products of 16 bits.
#include "kernels/convolution/depthwise_int8_rows.hpp"
#include "kernels/processor.hpp"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#include <algorithm>
#include <cstring>

namespace arenite {

namespace {

// Channels of a vector, and those made at once.
constexpr std::size_t kLanes = 16;
constexpr std::size_t kChannels = 64;
constexpr std::size_t kMostTaps = 64;

// Weights of two taps, interleaved as the processor does it: each vector has 8 channels.
struct alignas(64) Stack {
  __m256i weights[kMostTaps / 2][kChannels / kLanes][2];
  std::int32_t bias[kChannels];
  std::int32_t sums[kChannels];
  std::uint8_t padding[kChannels];
};

static_assert(sizeof(Stack) <= kInt8DepthwiseStack);

ARENITE_FOR_AVX2 __m256i weights_of_tap(const Int8DepthwiseRows& given, std::size_t tap,
                                        std::size_t channel) {
  const auto& window = given.convolution.window;
  if (tap >= window.kernel[0] * window.kernel[1]) {
    return _mm256_setzero_si256();
  }
  const std::int8_t* from =
      given.convolution.filter + tap * given.result.channels + given.channel + channel;
  const __m256i wide =
      _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  return _mm256_sub_epi16(
      wide, _mm256_set1_epi16(static_cast<short>(given.convolution.filter_zero_point)));
}

// Where the taps of a pixel lie; the padding, where they are outside.
void find_taps(const Int8DepthwiseRows& given, std::size_t row, std::size_t column,
               const std::uint8_t* padding, const std::uint8_t** taps) {
  const auto& window = given.convolution.window;
  const std::int64_t left = given.place(column, 1);
  for (std::size_t i = 0; i < window.kernel[0]; ++i) {
    const std::uint8_t* from = given.source_row(row, i);
    for (std::size_t j = 0; j < window.kernel[1]; ++j) {
      const std::int64_t x = left + static_cast<std::int64_t>(j) * window.dilations[1];
      const bool is_inside =
          from != nullptr && x >= 0 && x < static_cast<std::int64_t>(given.source.columns);
      *taps++ = is_inside
                    ? from + given.channel + static_cast<std::size_t>(x) * given.source.pixel_stride
                    : padding;
    }
  }
  *taps = padding;
}

ARENITE_FOR_AVX2 __attribute__((always_inline)) inline void make_pixel(
    const Int8DepthwiseRows& given, const std::uint8_t* const* taps, std::size_t pairs,
    std::size_t channels, Stack& stack) {
  const __m128i flips = _mm_set1_epi8(static_cast<char>(given.flip));
  const __m256i zeros = _mm256_set1_epi16(static_cast<short>(given.zero));
  for (std::size_t channel = 0; channel < channels; channel += kLanes) {
    __m256i low = _mm256_setzero_si256();
    __m256i high = _mm256_setzero_si256();
    for (std::size_t pair = 0; pair < pairs; ++pair) {
      __m256i wide[2];
#pragma GCC unroll 2
      for (std::size_t i = 0; i < 2; ++i) {
        const auto* from = reinterpret_cast<const __m128i*>(taps[2 * pair + i] + channel);
        const __m128i bytes = _mm_xor_si128(_mm_loadu_si128(from), flips);
        wide[i] = _mm256_sub_epi16(_mm256_cvtepu8_epi16(bytes), zeros);
      }
      const __m256i* weights = stack.weights[pair][channel / kLanes];
      low = _mm256_add_epi32(
          low, _mm256_madd_epi16(_mm256_unpacklo_epi16(wide[0], wide[1]), weights[0]));
      high = _mm256_add_epi32(
          high, _mm256_madd_epi16(_mm256_unpackhi_epi16(wide[0], wide[1]), weights[1]));
    }
    auto* to = reinterpret_cast<__m256i*>(stack.sums + channel);
    const auto* bias = reinterpret_cast<const __m256i*>(stack.bias + channel);
    _mm256_store_si256(to, _mm256_add_epi32(_mm256_permute2x128_si256(low, high, 0x20), bias[0]));
    _mm256_store_si256(to + 1,
                       _mm256_add_epi32(_mm256_permute2x128_si256(low, high, 0x31), bias[1]));
  }
}

ARENITE_FOR_AVX2 void make_whole(const Int8DepthwiseRows& given) {
  static const Requantise requantise = find_requantise();
  const auto& window = given.convolution.window;
  const auto& store = given.convolution.store;
  const std::size_t pairs = (window.kernel[0] * window.kernel[1] + 1) / 2;
  Stack stack;
  for (std::size_t channel = 0; channel < given.num_channels; channel += kLanes) {
    for (std::size_t pair = 0; pair < pairs; ++pair) {
      const __m256i a = weights_of_tap(given, 2 * pair, channel);
      const __m256i b = weights_of_tap(given, 2 * pair + 1, channel);
      stack.weights[pair][channel / kLanes][0] = _mm256_unpacklo_epi16(a, b);
      stack.weights[pair][channel / kLanes][1] = _mm256_unpackhi_epi16(a, b);
    }
  }
  for (std::size_t channel = 0; channel < given.num_channels; ++channel) {
    stack.bias[channel] = store.bias == nullptr ? 0 : store.bias[given.channel + channel];
  }
  std::memset(stack.padding, given.zero ^ given.flip, sizeof stack.padding);
  const std::uint8_t* taps[kMostTaps + 1];
  for (std::size_t row = given.rows.first; row < given.rows.first + given.rows.count; ++row) {
    std::uint8_t* to = given.result.row(row) + given.channel;
    for (std::size_t column = 0; column < given.result.columns; ++column) {
      find_taps(given, row, column, stack.padding, taps);
      make_pixel(given, taps, pairs, given.num_channels, stack);
      requantise(store, {stack.sums, 0, nullptr, given.channel, given.num_channels, 1, to, 0});
      to += given.result.pixel_stride;
    }
  }
}

// Whole vectors, and what is left of the channels as any processor does it.
void make(const Int8DepthwiseRows& given) {
  const std::size_t whole = given.num_channels / kLanes * kLanes;
  const auto part = [&given](std::size_t first, std::size_t count) {
    return Int8DepthwiseRows{given.convolution,     given.source, given.result, given.rows,
                             given.channel + first, count,        given.flip,   given.zero};
  };
  if (whole > 0) {
    make_whole(part(0, whole));
  }
  if (whole < given.num_channels) {
    int8_depthwise_for_any().make(part(whole, given.num_channels - whole));
  }
}

constexpr Int8DepthwiseKernel kAvx2{kChannels, make};

}  // namespace

const Int8DepthwiseKernel* int8_depthwise_for_avx2(const Int8DepthwiseRows& rows) {
  const auto& window = rows.convolution.window;
  const bool fits = rows.multiplier() == 1 && window.kernel[0] <= kMostTaps &&
                    window.kernel[1] <= kMostTaps &&
                    window.kernel[0] * window.kernel[1] <= kMostTaps;
  return vectors() != Vectors::any && fits ? &kAvx2 : nullptr;
}

}  // namespace arenite

#else

namespace arenite {

const Int8DepthwiseKernel* int8_depthwise_for_avx2(const Int8DepthwiseRows&) { return nullptr; }

}  // namespace arenite

#endif
