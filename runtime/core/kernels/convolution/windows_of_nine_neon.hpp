// Depthwise convolutions of 8-bit integers for 64-bit ARM with windows of 3 x 3: columns are read
// once and shared by the windows that they belong to.
#pragma once

#include "kernels/convolution/int8_neon.hpp"

namespace arenite::windows_of_nine {

// Three rows of a column, of 16 channels as signed bytes.
struct ColumnBytes {
  int8x16_t rows[3];
};

// Reads what lies under windows of 3 x 3 of a row of pixels, column after column.
template <bool IsSigned>
class Columns {
 public:
  // `row_of_nothing` is a pixel of the padding.
  ARENITE_INLINE Columns(const Int8DepthwiseRows& given, std::size_t channel, std::size_t row,
                         const std::uint8_t* row_of_nothing)
      : columns_(static_cast<std::int64_t>(given.source.columns)),
        x_(given.convolution.window.place(1, 0)),
        nothing_(vdupq_n_s8(static_cast<std::int8_t>(given.zero - 128))) {
    const auto pixel = static_cast<std::int64_t>(given.source.pixel_stride);
    const std::int64_t begin = std::clamp<std::int64_t>(x_, 0, columns_) * pixel;
#pragma GCC unroll 3
    for (std::size_t i = 0; i < 3; ++i) {
      const std::uint8_t* found = row_under(given.convolution.window, given.source, row, i);
      from_[i] = found == nullptr ? row_of_nothing : found + begin + channel;
      steps_[i] = found == nullptr ? 0 : pixel;
    }
  }

  // Whether so many columns lie inside the source.
  ARENITE_INLINE bool has(std::int64_t count) const { return x_ >= 0 && x_ + count <= columns_; }

  ARENITE_INLINE ColumnBytes next() { return has(1) ? next_inside() : (++x_, all_nothing()); }

  ARENITE_INLINE ColumnBytes next_inside() {
    ++x_;
    ColumnBytes bytes;
#pragma GCC unroll 3
    for (std::size_t i = 0; i < 3; ++i) {
      asm volatile("ld1 {%0.16b}, [%1], %2"
                   : "=w"(bytes.rows[i]), "+r"(from_[i])
                   : "r"(steps_[i])
                   : "memory");
      if constexpr (!IsSigned) { bytes.rows[i] = veorq_s8(bytes.rows[i], vdupq_n_s8(-128)); }
    }
    return bytes;
  }

 private:
  ARENITE_INLINE ColumnBytes all_nothing() const { return {{nothing_, nothing_, nothing_}}; }

  const std::uint8_t* from_[3];
  std::int64_t steps_[3];
  std::int64_t columns_;
  std::int64_t x_;
  int8x16_t nothing_;
};

// The weights of windows of 3 x 3 without zero points, of 16 channels.
class Weights {
 public:
  ARENITE_INLINE Weights(const Int8DepthwiseRows& given, std::size_t channel)
      : from_(given.convolution.filter + channel), step_(given.result.channels) {}

  ARENITE_INLINE int8x16_t at(std::size_t row, std::size_t column) const {
    return vld1q_s8(from_ + (3 * row + column) * step_);
  }

  bool has_least() const {
    int8x16_t least = vdupq_n_s8(0);
    for (std::size_t t = 0; t < 9; ++t) { least = vminq_s8(least, at(0, t)); }
    return vminvq_s8(least) == -128;
  }

  // Sums before products: the bias, and what the zero point of the source takes from it.
  void start(const Int8DepthwiseRows& given, std::size_t channel,
             std::int32_t (&start)[kInt8Panel]) const {
    int16x8_t low = vdupq_n_s16(0);
    int16x8_t high = vdupq_n_s16(0);
    for (std::size_t t = 0; t < 9; ++t) {
      low = vaddw_s8(low, vget_low_s8(at(0, t)));
      high = vaddw_high_s8(high, at(0, t));
    }
    std::memset(start, 0, sizeof start);
    const QuantisedStore& store = given.convolution.store;
    if (store.bias != nullptr) { std::memcpy(start, store.bias + channel, sizeof start); }
    const int32x4_t sums[kParts] = {vmovl_s16(vget_low_s16(low)), vmovl_high_s16(low),
                                    vmovl_s16(vget_low_s16(high)), vmovl_high_s16(high)};
    for (std::size_t v = 0; v < kParts; ++v) {
      vst1q_s32(start + 4 * v, vmlaq_n_s32(vld1q_s32(start + 4 * v), sums[v], 128 - given.zero));
    }
  }

 private:
  const std::int8_t* from_;
  std::size_t step_;
};

// Windows by dot products: the three rows of a column lie side by side for each channel, with a
// fourth that is not used.
class DotTaps {
 public:
  // Vectors of processors with dot products are slow to convert.
  static constexpr Bounds kKnown = Bounds::small_int8;

  struct Column {
    int8x16_t parts[kParts];
  };

  ARENITE_INLINE explicit DotTaps(const Weights& weights) {
#pragma GCC unroll 3
    for (std::size_t j = 0; j < 3; ++j) {
      weights_[j] = column({{weights.at(0, j), weights.at(1, j), weights.at(2, j)}});
    }
  }

  ARENITE_INLINE static Column column(const ColumnBytes& bytes) {
    const int8x16_t nothing = vdupq_n_s8(0);
    const auto low = vreinterpretq_s16_s8(vzip1q_s8(bytes.rows[0], bytes.rows[1]));
    const auto high = vreinterpretq_s16_s8(vzip2q_s8(bytes.rows[0], bytes.rows[1]));
    const auto low_rest = vreinterpretq_s16_s8(vzip1q_s8(bytes.rows[2], nothing));
    const auto high_rest = vreinterpretq_s16_s8(vzip2q_s8(bytes.rows[2], nothing));
    return {{vreinterpretq_s8_s16(vzip1q_s16(low, low_rest)),
             vreinterpretq_s8_s16(vzip2q_s16(low, low_rest)),
             vreinterpretq_s8_s16(vzip1q_s16(high, high_rest)),
             vreinterpretq_s8_s16(vzip2q_s16(high, high_rest))}};
  }

  ARENITE_INLINE void add(const Column& a, const Column& b, const Column& c,
                          int32x4_t (&sums)[kParts]) const {
#pragma GCC unroll 4
    for (std::size_t v = 0; v < kParts; ++v) {
      add_dots(sums[v], a.parts[v], weights_[0].parts[v]);
    }
#pragma GCC unroll 4
    for (std::size_t v = 0; v < kParts; ++v) {
      add_dots(sums[v], b.parts[v], weights_[1].parts[v]);
    }
#pragma GCC unroll 4
    for (std::size_t v = 0; v < kParts; ++v) {
      add_dots(sums[v], c.parts[v], weights_[2].parts[v]);
    }
  }

 private:
  ARENITE_INLINE static void add_dots(int32x4_t& to, int8x16_t a, int8x16_t b) {
    asm volatile(".arch armv8.2-a+dotprod\n\tsdot %0.4s, %1.16b, %2.16b"
                 : "+w"(to)
                 : "w"(a), "w"(b));
  }

  Column weights_[3];
};

// Windows by products of bytes, two of which fit 16 bits if no weight is -128.
class ProductTaps {
 public:
  static constexpr Bounds kKnown = Bounds::int8;

  using Column = ColumnBytes;

  ARENITE_INLINE explicit ProductTaps(const Weights& weights) {
#pragma GCC unroll 9
    for (std::size_t t = 0; t < 9; ++t) { weights_[t / 3].rows[t % 3] = weights.at(t % 3, t / 3); }
  }

  ARENITE_INLINE static Column column(const ColumnBytes& bytes) { return bytes; }

  ARENITE_INLINE void add(const Column& a, const Column& b, const Column& c,
                          int32x4_t (&sums)[kParts]) const {
    const Column* const columns[] = {&a, &b, &c};
    int16x8_t low[5];
    int16x8_t high[5];
#pragma GCC unroll 3
    for (std::size_t j = 0; j < 3; ++j) {
      low[j] = ordered::low_products(columns[j]->rows[0], weights_[j].rows[0]);
      high[j] = ordered::high_products(columns[j]->rows[0], weights_[j].rows[0]);
    }
    low[3] = ordered::low_products(a.rows[2], weights_[0].rows[2]);
    high[3] = ordered::high_products(a.rows[2], weights_[0].rows[2]);
#pragma GCC unroll 3
    for (std::size_t j = 0; j < 3; ++j) {
      ordered::add_low_products(low[j], columns[j]->rows[1], weights_[j].rows[1]);
      ordered::add_high_products(high[j], columns[j]->rows[1], weights_[j].rows[1]);
    }
    ordered::add_low_products(low[3], b.rows[2], weights_[1].rows[2]);
    ordered::add_high_products(high[3], b.rows[2], weights_[1].rows[2]);
    low[4] = ordered::low_products(c.rows[2], weights_[2].rows[2]);
    high[4] = ordered::high_products(c.rows[2], weights_[2].rows[2]);
    int32x4_t some[kParts];
    int32x4_t others[kParts];
    add_wide(low[0], low[1], some);
    add_wide(high[0], high[1], some + 2);
    add_wide(low[2], low[3], others);
    add_wide(high[2], high[3], others + 2);
    sums[0] = ordered::add_low_halves(sums[0], low[4]);
    sums[1] = ordered::add_high_halves(sums[1], low[4]);
    sums[2] = ordered::add_low_halves(sums[2], high[4]);
    sums[3] = ordered::add_high_halves(sums[3], high[4]);
#pragma GCC unroll 4
    for (std::size_t v = 0; v < kParts; ++v) { some[v] = ordered::add(some[v], others[v]); }
#pragma GCC unroll 4
    for (std::size_t v = 0; v < kParts; ++v) { sums[v] = ordered::add(sums[v], some[v]); }
  }

 private:
  ARENITE_INLINE static void add_wide(int16x8_t a, int16x8_t b, int32x4_t* to) {
    to[0] = ordered::low_sums(a, b);
    to[1] = ordered::high_sums(a, b);
  }

  ColumnBytes weights_[3];
};

// Windows of 3 x 3 of 16 channels, without zero points of weights.
template <bool IsSigned, Bounds Known, std::size_t Stride, typename Taps>
void make(const Int8DepthwiseRows& given, std::size_t channel, const std::int32_t* start) {
  const Taps taps(Weights(given, channel));
  const Requantised requantised(given.convolution.store);
  std::uint8_t row_of_nothing[kInt8Panel];
  std::memset(row_of_nothing, given.zero ^ given.flip, sizeof row_of_nothing);
  const float* const scales_from = given.convolution.store.scales + channel;
  const std::size_t step = given.result.pixel_stride;
  for (std::size_t i = 0; i < given.rows.count; ++i) {
    const std::size_t row = given.rows.first + i;
    std::uint8_t* to = given.result.row(row) + channel;
    const auto store = [&](const auto& a, const auto& b,
                           const auto& c) __attribute__((always_inline)) {
      int32x4_t sums[1][kParts];
      float32x4_t scales[kParts];
      uint8x16_t bytes[1];
      load_panel(start, sums[0]);
      taps.add(a, b, c, sums[0]);
      load_panel(scales_from, scales);
      requantised.make_some<Known>(sums, scales, bytes);
      asm volatile("st1 {%1.16b}, [%0], %2" : "+r"(to) : "w"(bytes[0]), "r"(step) : "memory");
    };
    Columns<IsSigned> columns(given, channel, row, row_of_nothing);
    const auto next = [&]() __attribute__((always_inline)) { return Taps::column(columns.next()); };
    const auto next_inside = [&]() __attribute__((always_inline)) {
      return Taps::column(columns.next_inside());
    };
    std::size_t left = given.result.columns;
    auto first = next();
    if constexpr (Stride == 1) {
      auto second = next();
      for (; left >= 3 && columns.has(3); left -= 3) {
        const auto third = next_inside();
        store(first, second, third);
        first = next_inside();
        store(second, third, first);
        second = next_inside();
        store(third, first, second);
      }
      for (; left > 0; --left) {
        const auto third = next();
        store(first, second, third);
        first = second;
        second = third;
      }
    } else {
      for (; left > 0 && columns.has(2); --left) {
        const auto second = next_inside();
        const auto third = next_inside();
        store(first, second, third);
        first = third;
      }
      for (; left > 0; --left) {
        const auto second = next();
        const auto third = next();
        store(first, second, third);
        first = third;
      }
    }
  }
}

template <bool IsSigned, Bounds Known, typename Taps>
void make(const Int8DepthwiseRows& given, std::size_t channel, const std::int32_t* start) {
  if (given.convolution.window.strides[1] == 1) {
    make<IsSigned, Known, 1, Taps>(given, channel, start);
  } else {
    make<IsSigned, Known, 2, Taps>(given, channel, start);
  }
}

template <bool IsSigned, typename Taps>
void make(const Int8DepthwiseRows& given, std::size_t channel) {
  const QuantisedStore& store = given.convolution.store;
  std::int32_t start[kInt8Panel];
  Weights(given, channel).start(given, channel, start);
  if constexpr (IsSigned) {
    if (Requantised(store).is_any_int8() &&
        (Taps::kKnown != Bounds::small_int8 || start_small(store.scales + channel, 9, start))) {
      make<true, Taps::kKnown, Taps>(given, channel, start);
      return;
    }
  }
  make<IsSigned, Bounds::any, Taps>(given, channel, start);
}

}  // namespace arenite::windows_of_nine
