// Depthwise convolutions for x86-64 with sums of four products of bytes.
#include "kernels/convolution/depthwise_int8_rows.hpp"
#include "kernels/processor.hpp"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#include <algorithm>

#if !defined(__clang__)
// The intrinsics of GCC 12 read what they then do not use.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

namespace arenite {

namespace {

// Four rows of the window are summed up at once: a *quad* has the bytes of four rows and 64
// channels, in four vectors. Interleaved as the processor does it, vector v has of each sixteen
// channels the four from 4 v on; so have the sums, and packing them to bytes puts them in order.
constexpr std::size_t kChannels = 64;
constexpr std::size_t kQuad = 4;
constexpr std::size_t kQuadBytes = kQuad * kChannels;

// Quads of weights, and of the source for a run of pixels.
constexpr std::size_t kMostWeights = 32;
constexpr std::size_t kMostQuads = 64;
constexpr std::size_t kMostKernel = 16;

struct alignas(64) Stack {
  std::uint8_t weights[kMostWeights][kQuadBytes];
  std::uint8_t source[kMostQuads][kQuadBytes];
  std::int32_t start[kQuad][16];
  float scales[kQuad][16];
};

static_assert(sizeof(Stack) <= kInt8DepthwiseStack);

#define ARENITE_INLINE __attribute__((always_inline)) inline

ARENITE_FOR_VNNI ARENITE_INLINE void interleave(__m512i a, __m512i b, __m512i c, __m512i d,
                                                void* to) {
  const __m512i low_ab = _mm512_unpacklo_epi8(a, b);
  const __m512i low_cd = _mm512_unpacklo_epi8(c, d);
  const __m512i high_ab = _mm512_unpackhi_epi8(a, b);
  const __m512i high_cd = _mm512_unpackhi_epi8(c, d);
  auto* vectors = static_cast<__m512i*>(to);
  _mm512_store_si512(vectors, _mm512_unpacklo_epi16(low_ab, low_cd));
  _mm512_store_si512(vectors + 1, _mm512_unpackhi_epi16(low_ab, low_cd));
  _mm512_store_si512(vectors + 2, _mm512_unpacklo_epi16(high_ab, high_cd));
  _mm512_store_si512(vectors + 3, _mm512_unpackhi_epi16(high_ab, high_cd));
}

// The channel of a sum.
std::size_t channel_of(std::size_t vector, std::size_t element) {
  return element / 4 * 16 + vector * 4 + element % 4;
}

class Maker {
 public:
  ARENITE_FOR_VNNI Maker(const Int8DepthwiseRows& given, Stack& stack)
      : given_(given),
        store_(given.convolution.store),
        window_(given.convolution.window),
        stack_(stack),
        quads_((window_.kernel[0] + kQuad - 1) / kQuad),
        mask_(~std::uint64_t{0} >> (64 - given.num_channels)) {
    const std::size_t extent = window_.dilations[1] * (window_.kernel[1] - 1) + 1;
    run_ = (kMostQuads / quads_ - extent) / window_.strides[1] + 1;
    const std::int8_t* filter = given.convolution.filter + given.channel;
    const std::size_t stride = given.result.channels;
    for (std::size_t j = 0; j < window_.kernel[1]; ++j) {
      for (std::size_t q = 0; q < quads_; ++q) {
        __m512i rows[kQuad];
        for (std::size_t i = 0; i < kQuad; ++i) {
          const std::size_t row = q * kQuad + i;
          rows[i] =
              row >= window_.kernel[0]
                  ? _mm512_setzero_si512()
                  : _mm512_maskz_loadu_epi8(mask_, filter + (row * window_.kernel[1] + j) * stride);
        }
        interleave(rows[0], rows[1], rows[2], rows[3], stack_.weights[j * quads_ + q]);
      }
    }
    for (std::size_t v = 0; v < kQuad; ++v) {
      __m512i sum = _mm512_setzero_si512();
      for (std::size_t t = 0; t < window_.kernel[1] * quads_; ++t) {
        sum = _mm512_dpbusd_epi32(sum, _mm512_set1_epi8(1),
                                  _mm512_load_si512(stack_.weights[t] + v * 64));
      }
      const __m512i taken = _mm512_mullo_epi32(sum, _mm512_set1_epi32(given.zero));
      _mm512_store_si512(stack_.start[v], _mm512_sub_epi32(_mm512_setzero_si512(), taken));
      for (std::size_t i = 0; i < 16; ++i) {
        const std::size_t channel = channel_of(v, i);
        const bool is_one = channel < given.num_channels;
        const std::int32_t* bias = store_.bias;
        const bool has_bias = is_one && bias != nullptr;
        const auto added = static_cast<std::uint32_t>(has_bias ? bias[given.channel + channel] : 0);
        stack_.start[v][i] =
            static_cast<std::int32_t>(static_cast<std::uint32_t>(stack_.start[v][i]) + added);
        const bool has_scale = is_one && store_.rounding == Rounding::nearest_even;
        stack_.scales[v][i] = has_scale ? store_.scales[given.channel + channel] : 0.0f;
      }
    }
  }

  ARENITE_FOR_VNNI void make() {
    const std::size_t columns = given_.result.columns;
    for (std::size_t row = given_.rows.first; row < given_.rows.first + given_.rows.count; ++row) {
      for (std::size_t column = 0; column < columns; column += run_) {
        make_run(row, column, std::min(run_, columns - column));
      }
    }
  }

 private:
  // The quads that the windows of some pixels share.
  ARENITE_FOR_VNNI ARENITE_INLINE void gather(std::size_t row, std::int64_t left,
                                              std::size_t count) {
    const __m512i zeros = _mm512_set1_epi8(static_cast<char>(given_.zero));
    const __m512i flips = _mm512_set1_epi8(static_cast<char>(given_.flip));
    const auto limit = static_cast<std::int64_t>(given_.source.columns);
    const std::size_t stride = given_.source.pixel_stride;
    const std::size_t low = static_cast<std::size_t>(
        std::clamp<std::int64_t>(-left, 0, static_cast<std::int64_t>(count)));
    const std::size_t high = static_cast<std::size_t>(std::clamp<std::int64_t>(
        limit - left, static_cast<std::int64_t>(low), static_cast<std::int64_t>(count)));
    for (std::size_t q = 0; q < quads_; ++q) {
      // Rows that are not there: any bytes, for those beyond the window, the zero point otherwise.
      alignas(64) std::uint8_t nothing[64];
      _mm512_store_si512(nothing, _mm512_xor_si512(zeros, flips));
      const std::uint8_t* rows[kQuad];
      std::size_t steps[kQuad];
      for (std::size_t i = 0; i < kQuad; ++i) {
        const std::size_t index = q * kQuad + i;
        const std::uint8_t* from =
            index < window_.kernel[0] ? given_.source_row(row, index) : nullptr;
        steps[i] = from == nullptr ? 0 : stride;
        rows[i] = from == nullptr ? nothing
                                  : from + given_.channel +
                                        (left + static_cast<std::int64_t>(low)) *
                                            static_cast<std::int64_t>(stride);
      }
      for (std::size_t x = 0; x < count; ++x) {
        std::uint8_t* to = stack_.source[x * quads_ + q];
        if (x < low || x >= high) {
          interleave(zeros, zeros, zeros, zeros, to);
          continue;
        }
        __m512i bytes[kQuad];
#pragma GCC unroll 4
        for (std::size_t i = 0; i < kQuad; ++i) {
          bytes[i] = _mm512_xor_si512(_mm512_maskz_loadu_epi8(mask_, rows[i]), flips);
          rows[i] += steps[i];
        }
        interleave(bytes[0], bytes[1], bytes[2], bytes[3], to);
      }
    }
  }

  ARENITE_FOR_VNNI void make_run(std::size_t row, std::size_t column, std::size_t count) {
    const std::size_t extent = window_.dilations[1] * (window_.kernel[1] - 1) + 1;
    gather(row, given_.place(column, 1), (count - 1) * window_.strides[1] + extent);
    std::uint8_t* to =
        given_.result.row(row) + column * given_.result.pixel_stride + given_.channel;
    const std::size_t stride = given_.result.pixel_stride;
    std::size_t p = 0;
    for (; p + 4 <= count; p += 4) {
      make_pixels<4>(p, to + p * stride);
    }
    for (; p < count; ++p) {
      make_pixels<1>(p, to + p * stride);
    }
  }

  template <std::size_t Pixels>
  ARENITE_FOR_VNNI ARENITE_INLINE void make_pixels(std::size_t first, std::uint8_t* to) {
    __m512i sums[Pixels][kQuad];
#pragma GCC unroll 4
    for (std::size_t p = 0; p < Pixels; ++p) {
#pragma GCC unroll 4
      for (std::size_t v = 0; v < kQuad; ++v) {
        sums[p][v] = _mm512_load_si512(stack_.start[v]);
      }
    }
    const std::size_t step = window_.strides[1] * quads_ * kQuadBytes;
    const std::uint8_t* weights = stack_.weights[0];
    for (std::size_t j = 0; j < window_.kernel[1]; ++j) {
      const std::uint8_t* from =
          stack_.source[(first * window_.strides[1] + j * window_.dilations[1]) * quads_];
      for (std::size_t q = 0; q < quads_; ++q) {
#pragma GCC unroll 4
        for (std::size_t v = 0; v < kQuad; ++v) {
          const __m512i factors = _mm512_load_si512(weights + v * 64);
#pragma GCC unroll 4
          for (std::size_t p = 0; p < Pixels; ++p) {
            sums[p][v] = _mm512_dpbusd_epi32(sums[p][v],
                                             _mm512_load_si512(from + p * step + v * 64), factors);
          }
        }
        weights += kQuadBytes;
        from += kQuadBytes;
      }
    }
#pragma GCC unroll 4
    for (std::size_t p = 0; p < Pixels; ++p) {
      store(sums[p], to + p * given_.result.pixel_stride);
    }
  }

  ARENITE_FOR_VNNI ARENITE_INLINE void store(const __m512i (&sums)[kQuad], std::uint8_t* to) {
    if (store_.rounding == Rounding::nearest_even) {
      // What is too low becomes the lowest integer, and saturates.
      const __m512 high = _mm512_set1_ps(static_cast<float>(store_.max - store_.zero_point));
      __m512i made[kQuad];
#pragma GCC unroll 4
      for (std::size_t v = 0; v < kQuad; ++v) {
        const __m512 scaled =
            _mm512_mul_ps(_mm512_cvtepi32_ps(sums[v]), _mm512_load_ps(stack_.scales[v]));
        made[v] = _mm512_cvtps_epi32(_mm512_min_ps(scaled, high));
      }
      const __m512i zero_point = _mm512_set1_epi16(static_cast<short>(store_.zero_point));
      const __m512i a = _mm512_adds_epi16(_mm512_packs_epi32(made[0], made[1]), zero_point);
      const __m512i b = _mm512_adds_epi16(_mm512_packs_epi32(made[2], made[3]), zero_point);
      const __m512i min = _mm512_set1_epi8(static_cast<char>(store_.min));
      const __m512i max = _mm512_set1_epi8(static_cast<char>(store_.max));
      const __m512i bytes =
          given_.flip != 0 ? _mm512_min_epi8(_mm512_max_epi8(_mm512_packs_epi16(a, b), min), max)
                           : _mm512_min_epu8(_mm512_max_epu8(_mm512_packus_epi16(a, b), min), max);
      _mm512_mask_storeu_epi8(to, mask_, bytes);
      return;
    }
    alignas(64) std::int32_t by_vectors[kQuad][16];
    std::int32_t in_order[kChannels];
    for (std::size_t v = 0; v < kQuad; ++v) {
      _mm512_store_si512(by_vectors[v], sums[v]);
    }
    for (std::size_t v = 0; v < kQuad; ++v) {
      for (std::size_t i = 0; i < 16; ++i) {
        in_order[channel_of(v, i)] = by_vectors[v][i];
      }
    }
    static const Requantise requantise = find_requantise();
    requantise(store_, {in_order, 0, nullptr, given_.channel, given_.num_channels, 1, to, 0});
  }

  const Int8DepthwiseRows& given_;
  const QuantisedStore& store_;
  const SlidingWindow& window_;
  Stack& stack_;
  std::size_t quads_;
  __mmask64 mask_;
  std::size_t run_;  // pixels whose quads fit the stack
};

ARENITE_FOR_VNNI void make_for_vnni(const Int8DepthwiseRows& given) {
  Stack stack;
  Maker(given, stack).make();
}

constexpr Int8DepthwiseKernel kVnni{kChannels, make_for_vnni};

bool fits_vnni(const Int8DepthwiseRows& given) {
  const auto& window = given.convolution.window;
  const std::size_t quads = (std::size_t{window.kernel[0]} + kQuad - 1) / kQuad;
  return given.multiplier() == 1 && given.convolution.filter_zero_point == 0 &&
         window.kernel[0] <= kMostKernel && window.kernel[1] <= kMostKernel &&
         quads * window.kernel[1] <= kMostWeights && window.dilations[1] <= kMostQuads &&
         (window.dilations[1] * (window.kernel[1] - 1) + 1) * quads <= kMostQuads;
}

}  // namespace

const Int8DepthwiseKernel* int8_depthwise_for_x86(const Int8DepthwiseRows& rows) {
  if (has_dot_products() && fits_vnni(rows)) {
    return &kVnni;
  }
  return nullptr;
}

}  // namespace arenite

#else

namespace arenite {

const Int8DepthwiseKernel* int8_depthwise_for_x86(const Int8DepthwiseRows&) { return nullptr; }

}  // namespace arenite

#endif
