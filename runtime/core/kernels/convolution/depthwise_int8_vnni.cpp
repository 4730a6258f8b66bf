// Depthwise convolutions for x86-64 with sums of four products of bytes.
#include "kernels/convolution/depthwise_int8_rows.hpp"
#include "kernels/processor.hpp"
#include "kernels/x86_intrinsics.hpp"

#if defined(__x86_64__) && defined(__GNUC__)

#include <algorithm>

namespace arenite {

namespace {

// Four rows of the window are summed up at once: a *quad* has the bytes of four rows and of the
// channels of a vector, in four vectors. Interleaved as the processor does it, vector v has of each
// sixteen channels the four from 4 v on; so have the sums, and packing them to bytes puts them in
// order.
constexpr std::size_t kQuad = 4;

// Quads of weights, and of the source for a run of pixels.
constexpr std::size_t kMostWeights = 32;
constexpr std::size_t kMostQuads = 64;
constexpr std::size_t kMostKernel = 16;

struct Wide {
  using Vector = __m512i;
  static constexpr std::size_t kChannels = 64;

  ARENITE_FOR_VNNI static __m512i load(const void* from) {
    return _mm512_load_si512(static_cast<const __m512i*>(from));
  }
  ARENITE_FOR_VNNI static __m512i load_some(std::uint64_t mask, const void* from) {
    return _mm512_maskz_loadu_epi8(static_cast<__mmask64>(mask), from);
  }
  ARENITE_FOR_VNNI static void store(void* to, __m512i a) {
    _mm512_store_si512(static_cast<__m512i*>(to), a);
  }
  ARENITE_FOR_VNNI static void store_some(std::uint64_t mask, void* to, __m512i a) {
    _mm512_mask_storeu_epi8(to, static_cast<__mmask64>(mask), a);
  }
  ARENITE_FOR_VNNI static __m512i bytes(std::int32_t a) {
    return _mm512_set1_epi8(static_cast<char>(a));
  }
  ARENITE_FOR_VNNI static __m512i exclusive_or(__m512i a, __m512i b) {
    return _mm512_xor_si512(a, b);
  }
  // Four vectors of bytes, as `Stack` has them.
  ARENITE_FOR_VNNI static void interleave(__m512i a, __m512i b, __m512i c, __m512i d, void* to) {
    const __m512i low_ab = _mm512_unpacklo_epi8(a, b);
    const __m512i low_cd = _mm512_unpacklo_epi8(c, d);
    const __m512i high_ab = _mm512_unpackhi_epi8(a, b);
    const __m512i high_cd = _mm512_unpackhi_epi8(c, d);
    auto* vectors = static_cast<__m512i*>(to);
    store(vectors, _mm512_unpacklo_epi16(low_ab, low_cd));
    store(vectors + 1, _mm512_unpackhi_epi16(low_ab, low_cd));
    store(vectors + 2, _mm512_unpacklo_epi16(high_ab, high_cd));
    store(vectors + 3, _mm512_unpackhi_epi16(high_ab, high_cd));
  }
  ARENITE_FOR_VNNI static __m512i add_products(__m512i sums, __m512i source, __m512i weights) {
    return _mm512_dpbusd_epi32(sums, source, weights);
  }
  // What is too low becomes the lowest integer, and saturates.
  ARENITE_FOR_VNNI static __m512i scale(__m512i sums, const float* scales, float high) {
    const auto scaled = _mm512_mul_ps(_mm512_cvtepi32_ps(sums), _mm512_load_ps(scales));
    return _mm512_cvtps_epi32(_mm512_min_ps(scaled, _mm512_set1_ps(high)));
  }
  ARENITE_FOR_VNNI static __m512i pack(const __m512i (&made)[kQuad], const QuantisedStore& store) {
    const __m512i zero_point = _mm512_set1_epi16(static_cast<short>(store.zero_point));
    const __m512i a = _mm512_adds_epi16(_mm512_packs_epi32(made[0], made[1]), zero_point);
    const __m512i b = _mm512_adds_epi16(_mm512_packs_epi32(made[2], made[3]), zero_point);
    const __m512i min = bytes(store.min);
    const __m512i max = bytes(store.max);
    return store.max > 127 ? _mm512_min_epu8(_mm512_max_epu8(_mm512_packus_epi16(a, b), min), max)
                           : _mm512_min_epi8(_mm512_max_epi8(_mm512_packs_epi16(a, b), min), max);
  }
};

struct Narrow {
  using Vector = __m256i;
  static constexpr std::size_t kChannels = 32;

  ARENITE_FOR_VNNI static __m256i load(const void* from) {
    return _mm256_load_si256(static_cast<const __m256i*>(from));
  }
  ARENITE_FOR_VNNI static __m256i load_some(std::uint64_t mask, const void* from) {
    return _mm256_maskz_loadu_epi8(static_cast<__mmask32>(mask), from);
  }
  ARENITE_FOR_VNNI static void store(void* to, __m256i a) {
    _mm256_store_si256(static_cast<__m256i*>(to), a);
  }
  ARENITE_FOR_VNNI static void store_some(std::uint64_t mask, void* to, __m256i a) {
    _mm256_mask_storeu_epi8(to, static_cast<__mmask32>(mask), a);
  }
  ARENITE_FOR_VNNI static __m256i bytes(std::int32_t a) {
    return _mm256_set1_epi8(static_cast<char>(a));
  }
  ARENITE_FOR_VNNI static __m256i exclusive_or(__m256i a, __m256i b) {
    return _mm256_xor_si256(a, b);
  }
  // Four vectors of bytes, as `Stack` has them.
  ARENITE_FOR_VNNI static void interleave(__m256i a, __m256i b, __m256i c, __m256i d, void* to) {
    const __m256i low_ab = _mm256_unpacklo_epi8(a, b);
    const __m256i low_cd = _mm256_unpacklo_epi8(c, d);
    const __m256i high_ab = _mm256_unpackhi_epi8(a, b);
    const __m256i high_cd = _mm256_unpackhi_epi8(c, d);
    auto* vectors = static_cast<__m256i*>(to);
    store(vectors, _mm256_unpacklo_epi16(low_ab, low_cd));
    store(vectors + 1, _mm256_unpackhi_epi16(low_ab, low_cd));
    store(vectors + 2, _mm256_unpacklo_epi16(high_ab, high_cd));
    store(vectors + 3, _mm256_unpackhi_epi16(high_ab, high_cd));
  }
  ARENITE_FOR_VNNI static __m256i add_products(__m256i sums, __m256i source, __m256i weights) {
    return _mm256_dpbusd_epi32(sums, source, weights);
  }
  // What is too low becomes the lowest integer, and saturates.
  ARENITE_FOR_VNNI static __m256i scale(__m256i sums, const float* scales, float high) {
    const auto scaled = _mm256_mul_ps(_mm256_cvtepi32_ps(sums), _mm256_load_ps(scales));
    return _mm256_cvtps_epi32(_mm256_min_ps(scaled, _mm256_set1_ps(high)));
  }
  ARENITE_FOR_VNNI static __m256i pack(const __m256i (&made)[kQuad], const QuantisedStore& store) {
    const __m256i zero_point = _mm256_set1_epi16(static_cast<short>(store.zero_point));
    const __m256i a = _mm256_adds_epi16(_mm256_packs_epi32(made[0], made[1]), zero_point);
    const __m256i b = _mm256_adds_epi16(_mm256_packs_epi32(made[2], made[3]), zero_point);
    const __m256i min = bytes(store.min);
    const __m256i max = bytes(store.max);
    return store.max > 127 ? _mm256_min_epu8(_mm256_max_epu8(_mm256_packus_epi16(a, b), min), max)
                           : _mm256_min_epi8(_mm256_max_epi8(_mm256_packs_epi16(a, b), min), max);
  }
};

template <typename Vectors>
struct alignas(64) Stack {
  std::uint8_t weights[kMostWeights][kQuad * Vectors::kChannels];
  std::uint8_t source[kMostQuads][kQuad * Vectors::kChannels];
  std::int32_t start[kQuad][Vectors::kChannels / 4];
  float scales[kQuad][Vectors::kChannels / 4];
};

static_assert(sizeof(Stack<Wide>) <= kInt8DepthwiseStack);

// The channel of a sum.
std::size_t channel_of(std::size_t vector, std::size_t element) {
  return element / 4 * 16 + vector * 4 + element % 4;
}

template <typename Vectors>
class Maker {
  using Vector = typename Vectors::Vector;
  static constexpr std::size_t kBytes = Vectors::kChannels;
  static constexpr std::size_t kQuadBytes = kQuad * kBytes;

 public:
  ARENITE_FOR_VNNI Maker(const Int8DepthwiseRows& given, Stack<Vectors>& stack)
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
        Vector rows[kQuad];
        for (std::size_t i = 0; i < kQuad; ++i) {
          const std::size_t row = q * kQuad + i;
          const std::int8_t* from = filter + (row * window_.kernel[1] + j) * stride;
          rows[i] = row < window_.kernel[0] ? Vectors::load_some(mask_, from) : Vectors::bytes(0);
        }
        Vectors::interleave(rows[0], rows[1], rows[2], rows[3], stack_.weights[j * quads_ + q]);
      }
    }
    // All of a sum that the source does not change, and the scales, in the order of the sums.
    for (std::size_t v = 0; v < kQuad; ++v) {
      Vector sum = Vectors::bytes(0);
      for (std::size_t t = 0; t < window_.kernel[1] * quads_; ++t) {
        const Vector weights = Vectors::load(stack_.weights[t] + v * kBytes);
        sum = Vectors::add_products(sum, Vectors::bytes(1), weights);
      }
      alignas(64) std::uint32_t sums[kBytes / 4];
      Vectors::store(sums, sum);
      for (std::size_t i = 0; i < kBytes / 4; ++i) {
        const std::size_t channel = channel_of(v, i);
        const bool is_one = channel < given.num_channels;
        const std::int32_t bias =
            is_one && store_.bias != nullptr ? store_.bias[given.channel + channel] : 0;
        stack_.start[v][i] = static_cast<std::int32_t>(
            static_cast<std::uint32_t>(bias) - sums[i] * static_cast<std::uint32_t>(given.zero));
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
    const Vector zeros = Vectors::bytes(given_.zero);
    const Vector flips = Vectors::bytes(given_.flip);
    const auto limit = static_cast<std::int64_t>(given_.source.columns);
    const std::size_t stride = given_.source.pixel_stride;
    const std::size_t low = static_cast<std::size_t>(
        std::clamp<std::int64_t>(-left, 0, static_cast<std::int64_t>(count)));
    const std::size_t high = static_cast<std::size_t>(std::clamp<std::int64_t>(
        limit - left, static_cast<std::int64_t>(low), static_cast<std::int64_t>(count)));
    for (std::size_t q = 0; q < quads_; ++q) {
      // Rows that are not there: any bytes, for those beyond the window, the zero point otherwise.
      alignas(64) std::uint8_t nothing[kBytes];
      Vectors::store(nothing, Vectors::exclusive_or(zeros, flips));
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
          Vectors::interleave(zeros, zeros, zeros, zeros, to);
          continue;
        }
        Vector bytes[kQuad];
#pragma GCC unroll 4
        for (std::size_t i = 0; i < kQuad; ++i) {
          bytes[i] = Vectors::exclusive_or(Vectors::load_some(mask_, rows[i]), flips);
          rows[i] += steps[i];
        }
        Vectors::interleave(bytes[0], bytes[1], bytes[2], bytes[3], to);
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
    Vector sums[Pixels][kQuad];
#pragma GCC unroll 4
    for (std::size_t p = 0; p < Pixels; ++p) {
#pragma GCC unroll 4
      for (std::size_t v = 0; v < kQuad; ++v) {
        sums[p][v] = Vectors::load(stack_.start[v]);
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
          const Vector factors = Vectors::load(weights + v * kBytes);
#pragma GCC unroll 4
          for (std::size_t p = 0; p < Pixels; ++p) {
            const Vector source = Vectors::load(from + p * step + v * kBytes);
            sums[p][v] = Vectors::add_products(sums[p][v], source, factors);
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

  ARENITE_FOR_VNNI ARENITE_INLINE void store(const Vector (&sums)[kQuad], std::uint8_t* to) {
    if (store_.rounding == Rounding::nearest_even) {
      const auto high = static_cast<float>(store_.max - store_.zero_point);
      Vector made[kQuad];
#pragma GCC unroll 4
      for (std::size_t v = 0; v < kQuad; ++v) {
        made[v] = Vectors::scale(sums[v], stack_.scales[v], high);
      }
      Vectors::store_some(mask_, to, Vectors::pack(made, store_));
      return;
    }
    alignas(64) std::int32_t by_vectors[kQuad][kBytes / 4];
    std::int32_t in_order[kBytes];
    for (std::size_t v = 0; v < kQuad; ++v) {
      Vectors::store(by_vectors[v], sums[v]);
    }
    for (std::size_t v = 0; v < kQuad; ++v) {
      for (std::size_t i = 0; i < kBytes / 4; ++i) {
        in_order[channel_of(v, i)] = by_vectors[v][i];
      }
    }
    static const Requantise requantise = find_requantise();
    requantise(store_, {in_order, 0, nullptr, given_.channel, given_.num_channels, 1, to, 0});
  }

  const Int8DepthwiseRows& given_;
  const QuantisedStore& store_;
  const SlidingWindow& window_;
  Stack<Vectors>& stack_;
  std::size_t quads_;
  __mmask64 mask_;
  std::size_t run_;  // pixels whose quads fit the stack
};

template <typename Vectors>
ARENITE_FOR_VNNI void make_with(const Int8DepthwiseRows& given) {
  Stack<Vectors> stack;
  Maker<Vectors>(given, stack).make();
}

void make_for_vnni(const Int8DepthwiseRows& given) {
  (given.num_channels > Narrow::kChannels ? make_with<Wide> : make_with<Narrow>)(given);
}

constexpr Int8DepthwiseKernel kVnni{Wide::kChannels, make_for_vnni};

bool fits_vnni(const Int8DepthwiseRows& given) {
  const auto& window = given.convolution.window;
  const std::size_t quads = (std::size_t{window.kernel[0]} + kQuad - 1) / kQuad;
  return given.multiplier() == 1 && given.convolution.filter_zero_point == 0 &&
         window.kernel[0] <= kMostKernel && window.kernel[1] <= kMostKernel &&
         quads * window.kernel[1] <= kMostWeights && window.dilations[1] <= kMostQuads &&
         (window.dilations[1] * (window.kernel[1] - 1) + 1) * quads <= kMostQuads;
}

}  // namespace

const Int8DepthwiseKernel* int8_depthwise_for_vnni(const Int8DepthwiseRows& rows) {
  if (has_dot_products() && fits_vnni(rows)) {
    return &kVnni;
  }
  return nullptr;
}

}  // namespace arenite

#else

namespace arenite {

const Int8DepthwiseKernel* int8_depthwise_for_vnni(const Int8DepthwiseRows&) { return nullptr; }

}  // namespace arenite

#endif
