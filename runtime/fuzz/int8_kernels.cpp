// Compares convolutions, pools and sums of 8-bit integers of random shapes with plain loops, to the
// bit.
//
//     int8_kernels COUNT SEED [LEAST WEIGHT]
//
// Run it under the sanitizers, with each ARENITE_VECTORS.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/convolution/convolve_int8.hpp"
#include "kernels/convolution/depthwise_int8.hpp"
#include "kernels/pool_int8.hpp"
#include "kernels/quantised_sum.hpp"
#include "random_int8.hpp"
#include "scattered_rows.hpp"

namespace {

using arenite::Image;
using arenite::QuantisedStore;
using arenite::RowRange;
using arenite::fuzz::Case;
using arenite::fuzz::Dice;
using arenite::fuzz::random_case;
using arenite::fuzz::random_elements;

int least_weight = -128;

// Sums of the window's products for one result, wrapped to 32 bits.
template <typename T>
std::int32_t naive_sum(const Case& given, const T* source, const std::int8_t* filter,
                       std::size_t row, std::size_t column, std::size_t channel) {
  const auto& window = given.window;
  const std::size_t group = channel / given.outputs;
  const std::size_t channels = given.groups * given.inputs;
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < window.kernel[0]; ++i) {
    for (std::size_t j = 0; j < window.kernel[1]; ++j) {
      const std::int64_t y = std::int64_t(row) * window.strides[0] - window.padding[0] +
                             std::int64_t(i) * window.dilations[0];
      const std::int64_t x = std::int64_t(column) * window.strides[1] - window.padding[3] +
                             std::int64_t(j) * window.dilations[1];
      if (y < 0 || x < 0 || y >= std::int64_t(given.rows) || x >= std::int64_t(given.columns)) {
        continue;
      }
      for (std::size_t c = 0; c < given.inputs; ++c) {
        const std::int64_t a = source[(std::size_t(y) * given.columns + std::size_t(x)) * channels +
                                      group * given.inputs + c];
        const std::int64_t b =
            filter[((channel * window.kernel[0] + i) * window.kernel[1] + j) * given.inputs + c];
        sum += (a - given.source_zero) * (b - given.filter_zero);
      }
    }
  }
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(static_cast<std::uint64_t>(sum)));
}

std::int32_t naive_store(const QuantisedStore& store, std::int32_t sum, std::size_t channel) {
  const auto wrapped = static_cast<std::int32_t>(
      static_cast<std::uint32_t>(sum) +
      static_cast<std::uint32_t>(store.bias == nullptr ? 0 : store.bias[channel]));
  const float product = static_cast<float>(wrapped) * store.scales[channel];
  const auto scaled = std::int64_t(std::nearbyint(std::clamp(product, -1e6f, 1e6f)));
  return static_cast<std::int32_t>(
      std::clamp<std::int64_t>(scaled + store.zero_point, store.min, store.max));
}

// As the header says.
std::unique_ptr<std::int8_t[]> pack(const Case& given, const std::int8_t* filter) {
  const std::size_t depth = given.window.kernel[0] * given.window.kernel[1] * given.inputs;
  const std::size_t size = arenite::packed_int8_filter_size(given.groups, given.outputs, depth);
  std::unique_ptr<std::int8_t[]> packed(new std::int8_t[size]());
  std::int8_t* to = packed.get();
  for (std::size_t group = 0; group < given.groups; ++group) {
    for (std::size_t first = 0; first < given.outputs; first += 16) {
      const std::size_t count = std::min<std::size_t>(16, given.outputs - first);
      const std::int8_t* from = filter + (group * given.outputs + first) * depth;
      for (std::size_t j = 0; j < count; ++j) {
        std::int32_t sum = 0;
        for (std::size_t k = 0; k < depth; ++k) {
          sum += from[j * depth + k];
          to[64 + k / 4 * 64 + j * 4 + k % 4] = from[j * depth + k];
        }
        std::memcpy(to + 4 * j, &sum, 4);
      }
      to += 64 + (depth + 3) / 4 * 64;
    }
  }
  if (to != packed.get() + size) {
    std::printf("the size of a packed filter is wrong\n");
    std::exit(1);
  }
  return packed;
}

template <typename T>
bool check(Dice& dice, bool is_depthwise, pthreadpool_t threads) {
  constexpr int kLow = std::numeric_limits<T>::min();
  constexpr int kHigh = std::numeric_limits<T>::max();
  Case given = random_case(dice, is_depthwise);
  given.source_zero = dice.between(kLow, kHigh);
  given.filter_zero = dice.one_in(3) ? dice.between(-128, 127) : 0;
  const auto& window = given.window;
  const std::size_t channels = given.groups * given.inputs;
  const std::size_t results = given.groups * given.outputs;
  const std::size_t taps = window.kernel[0] * window.kernel[1];
  const std::size_t depth = taps * given.inputs;

  const auto source = random_elements<T>(dice, given.rows * given.columns * channels, kLow, kHigh);
  const auto filter = random_elements<std::int8_t>(dice, results * depth, least_weight, 127);
  const int size = dice.one_in(10) ? 2'000'000'000 : 100'000;
  const auto bias = random_elements<std::int32_t>(dice, results, -size, size);
  std::unique_ptr<float[]> scales(new float[results]);
  const int largest = dice.one_in(2) ? 0 : -9;  // small scaled sums have ways of their own
  for (std::size_t i = 0; i < results; ++i) {
    // Halves, often: to see how they are rounded.
    scales[i] = dice.one_in(2)
                    ? std::ldexp(1.0f, dice.between(-14, largest))
                    : std::ldexp(float(dice.between(1, 1000)), dice.between(-24, largest - 8));
  }
  int min = dice.one_in(2) ? kLow : dice.between(kLow, kHigh);
  int max = dice.one_in(2) ? kHigh : dice.between(kLow, kHigh);
  if (min > max) { std::swap(min, max); }
  const QuantisedStore store{dice.one_in(5) ? nullptr : bias.get(), scales.get(),
                             dice.between(kLow, kHigh), min, max};

  // Rows in no order, as many as the band needs, apart from each other, as are pixels.
  const std::size_t stride = channels + (dice.one_in(3) ? std::size_t(dice.between(1, 9)) : 0);
  const std::size_t row_stride =
      stride * given.columns + (dice.one_in(3) ? std::size_t(dice.between(0, 9)) : 0);
  const std::size_t new_stride = results + (dice.one_in(3) ? std::size_t(dice.between(1, 9)) : 0);
  const std::size_t new_row_stride =
      new_stride * given.new_columns + (dice.one_in(3) ? std::size_t(dice.between(0, 9)) : 0);
  const std::size_t band =
      dice.one_in(2) ? given.new_rows : std::size_t(dice.between(1, int(given.new_rows)));
  const std::size_t held = std::min<std::size_t>(
      given.rows, dice.one_in(2) ? given.rows
                                 : (band - 1) * window.strides[0] +
                                       window.dilations[0] * (window.kernel[0] - 1) + 1);
  const std::size_t source_size = (held - 1) * row_stride + (given.columns - 1) * stride + channels;
  std::unique_ptr<T[]> lying(new T[source_size]);
  const std::size_t new_size =
      (given.new_rows - 1) * new_row_stride + (given.new_columns - 1) * new_stride + results;
  std::unique_ptr<T[]> made(new T[new_size]);
  std::fill_n(made.get(), new_size, T{99});
  const auto offsets = [&](std::size_t rows, std::size_t slots, std::size_t slot_size) {
    return arenite::fuzz::scattered_rows(
        rows, slots, slot_size * sizeof(T),
        [&](std::size_t limit) { return std::size_t(dice.between(0, int(limit) - 1)); });
  };
  const auto row_offsets = offsets(given.rows, held, row_stride);
  const auto new_row_offsets = offsets(given.new_rows, given.new_rows, new_row_stride);
  const bool is_scattered = held < given.rows || dice.one_in(2);
  const Image<const T> image{lying.get(),
                             given.rows,
                             given.columns,
                             channels,
                             stride,
                             row_stride,
                             is_scattered ? row_offsets.data() : nullptr};
  const Image<T> result{made.get(),
                        given.new_rows,
                        given.new_columns,
                        results,
                        new_stride,
                        new_row_stride,
                        dice.one_in(2) ? new_row_offsets.data() : nullptr};

  const auto packed = is_depthwise ? nullptr : pack(given, filter.get());
  std::unique_ptr<std::int8_t[]> by_taps(new std::int8_t[results * taps]);
  for (std::size_t i = 0; is_depthwise && i < results * taps; ++i) {
    by_taps[i % taps * results + i / taps] = filter[i];
  }
  for (std::size_t row = 0; row < given.new_rows; row += band) {
    const RowRange rows{row, std::min(band, given.new_rows - row)};
    const std::int64_t first = std::int64_t(row) * window.strides[0] - window.padding[0];
    const std::int64_t last = first + std::int64_t(rows.count - 1) * window.strides[0] +
                              std::int64_t(window.dilations[0]) * (window.kernel[0] - 1);
    for (std::int64_t y = std::max<std::int64_t>(0, first);
         y <= std::min<std::int64_t>(last, std::int64_t(given.rows) - 1); ++y) {
      for (std::size_t x = 0; x < given.columns; ++x) {
        const T* from = source.get() + (std::size_t(y) * given.columns + x) * channels;
        T* to = lying.get() + (image.row(std::size_t(y)) - lying.get());
        std::copy(from, from + channels, to + x * stride);
      }
    }
    if (is_depthwise) {
      arenite::convolve_depthwise(
          {window, by_taps.get(), given.source_zero, given.filter_zero, store}, image, result, rows,
          threads);
    } else {
      arenite::convolve(
          {window, given.groups, packed.get(), given.source_zero, given.filter_zero, store}, image,
          result, rows, threads);
    }
  }

  std::vector<std::size_t> row_in_slot(given.new_rows);
  for (std::size_t row = 0; row < given.new_rows; ++row) {
    row_in_slot[std::size_t(result.row(row) - made.get()) / new_row_stride] = row;
  }
  for (std::size_t i = 0; i < new_size; ++i) {
    const std::size_t slot = std::min(i / new_row_stride, given.new_rows - 1);
    const std::size_t row = row_in_slot[slot];
    const std::size_t within = i - slot * new_row_stride;
    const std::size_t column = within / new_stride;
    const std::size_t channel = within % new_stride;
    std::int32_t expected = 99;
    if (column < given.new_columns && channel < results) {
      const auto sum = naive_sum(given, source.get(), filter.get(), row, column, channel);
      expected = naive_store(store, sum, channel);
    }
    if (made[i] != static_cast<T>(expected)) {
      std::printf("row %zu, column %zu, channel %zu: %d instead of %d\n", row, column, channel,
                  int(made[i]), expected);
      std::printf("%s, %s, %zu x %zu x %zu groups of %zu to %zu, window %u x %u\n",
                  is_depthwise ? "depthwise" : "dense", kLow < 0 ? "int8" : "uint8", given.rows,
                  given.columns, given.groups, given.inputs, given.outputs, window.kernel[0],
                  window.kernel[1]);
      return false;
    }
  }
  return true;
}

// Sums that become floats or stay integers, of filters with a zero point for each channel.
template <typename T, typename Sum>
bool check_wide(Dice& dice, pthreadpool_t threads) {
  constexpr int kLow = std::numeric_limits<T>::min();
  constexpr int kHigh = std::numeric_limits<T>::max();
  Case given = random_case(dice, false);
  given.source_zero = dice.between(kLow, kHigh);
  const std::size_t channels = given.groups * given.inputs;
  const std::size_t results = given.groups * given.outputs;
  const std::size_t depth = given.window.kernel[0] * given.window.kernel[1] * given.inputs;
  const auto source = random_elements<T>(dice, given.rows * given.columns * channels, kLow, kHigh);
  const auto filter = random_elements<std::int8_t>(dice, results * depth, least_weight, 127);
  const auto zeros = random_elements<std::int32_t>(dice, results, -256, 255);
  std::unique_ptr<float[]> numbers(new float[2 * results]);
  for (std::size_t i = 0; i < 2 * results; ++i) { numbers[i] = float(dice.between(-99, 99)) / 64; }
  const auto packed = pack(given, filter.get());
  const std::size_t stride = results + (dice.one_in(3) ? std::size_t(dice.between(1, 9)) : 0);
  const std::size_t size = (given.new_rows * given.new_columns - 1) * stride + results;
  std::unique_ptr<Sum[]> made(new Sum[size]);
  std::fill_n(made.get(), size, Sum{99});
  const bool has_zeros = dice.one_in(2);
  const float limit = dice.one_in(2) ? std::numeric_limits<float>::infinity() : 1000.0f;
  const arenite::Int8Sums kernel{given.window,
                                 given.groups,
                                 packed.get(),
                                 given.source_zero,
                                 has_zeros ? zeros.get() : nullptr,
                                 0.5f,
                                 numbers.get(),
                                 dice.one_in(3) ? nullptr : numbers.get() + results,
                                 -limit,
                                 limit};
  const Image<const T> image{source.get(), given.rows, given.columns,
                             channels,     channels,   channels * given.columns};
  const Image<Sum> result{made.get(), given.new_rows, given.new_columns,
                          results,    stride,         stride * given.new_columns};
  const std::size_t cut = std::size_t(dice.between(0, int(given.new_rows) - 1));
  if (cut > 0) { arenite::convolve(kernel, image, result, {0, cut}, threads); }
  arenite::convolve(kernel, image, result, {cut, given.new_rows - cut}, threads);
  for (std::size_t i = 0; i < size; ++i) {
    const std::size_t pixel = i / stride;
    const std::size_t channel = i % stride;
    double expected = 99;
    double tolerance = 0;
    if (channel < results) {
      given.filter_zero = has_zeros ? zeros[channel] : 0;
      expected = naive_sum(given, source.get(), filter.get(), pixel / given.new_columns,
                           pixel % given.new_columns, channel);
      if (std::is_same_v<Sum, float>) {
        expected *= 0.5 * double(numbers[channel]);
        tolerance = 1e-6 * (std::abs(expected) + 2);
        expected += kernel.bias == nullptr ? 0.0 : double(kernel.bias[channel]);
        expected = std::clamp(expected, double(-limit), double(limit));
      }
    }
    if (std::abs(double(made[i]) - expected) > tolerance) {
      std::printf("pixel %zu, channel %zu: %f instead of %f\n", pixel, channel, double(made[i]),
                  expected);
      return false;
    }
  }
  return true;
}

template <typename T>
T naive_pool(const arenite::Int8Pool& pool, const Image<const T>& source, std::size_t row,
             std::size_t column, std::size_t channel) {
  const auto& window = pool.window;
  std::int64_t sum = 0, largest = std::numeric_limits<T>::min(), inside = 0, padded = 0;
  for (std::int64_t i = 0; i < window.kernel[0]; ++i) {
    for (std::int64_t j = 0; j < window.kernel[1]; ++j) {
      const std::int64_t y =
          std::int64_t(row) * window.strides[0] - window.padding[0] + i * window.dilations[0];
      const std::int64_t x =
          std::int64_t(column) * window.strides[1] - window.padding[3] + j * window.dilations[1];
      const auto rows = std::int64_t(source.rows), columns = std::int64_t(source.columns);
      padded += y < rows + window.padding[2] && x < columns + window.padding[1] ? 1 : 0;
      if (y >= 0 && x >= 0 && y < rows && x < columns) {
        const T value = source.row(std::size_t(y))[std::size_t(x) * source.pixel_stride + channel];
        sum += value - pool.source_zero_point;
        largest = std::max<std::int64_t>(largest, value);
        ++inside;
      }
    }
  }
  if (!pool.is_average && inside == 0) { return static_cast<T>(pool.min); }
  const std::int64_t count = pool.is_sum           ? 1
                             : pool.counts_padding ? padded
                                                   : std::max<std::int64_t>(inside, 1);
  const float value = pool.is_average
                          ? static_cast<float>(sum) * pool.ratio / static_cast<float>(count)
                          : static_cast<float>(largest - pool.source_zero_point) * pool.ratio;
  return static_cast<T>(std::clamp<std::int64_t>(
      std::int64_t(std::nearbyint(value)) + pool.zero_point, pool.min, pool.max));
}

template <typename T>
bool check_pool(Dice& dice, pthreadpool_t threads) {
  constexpr int kLow = std::numeric_limits<T>::min();
  constexpr int kHigh = std::numeric_limits<T>::max();
  const Case given = random_case(dice, true);
  const std::size_t channels = given.groups;
  int min = dice.one_in(2) ? kLow : dice.between(kLow, kHigh);
  int max = dice.one_in(2) ? kHigh : dice.between(kLow, kHigh);
  if (min > max) { std::swap(min, max); }
  arenite::Int8Pool pool{given.window,
                         dice.one_in(2),
                         dice.one_in(2),
                         dice.one_in(4),
                         dice.one_in(2) ? 1.0f : float(dice.between(1, 300)) / 100.0f,
                         dice.between(kLow, kHigh),
                         0,
                         min,
                         max};
  pool.zero_point = dice.one_in(2) ? pool.source_zero_point : dice.between(kLow, kHigh);
  const auto source = random_elements<T>(dice, given.rows * given.columns * channels, kLow, kHigh);
  std::unique_ptr<T[]> made(new T[given.new_rows * given.new_columns * channels]);
  const Image<const T> image{source.get(), given.rows, given.columns,
                             channels,     channels,   given.columns * channels};
  const Image<T> result{made.get(), given.new_rows, given.new_columns,
                        channels,   channels,       given.new_columns * channels};
  const std::size_t band = std::size_t(dice.between(1, int(given.new_rows)));
  for (std::size_t row = 0; row < given.new_rows; row += band) {
    arenite::pool(pool, image, result, {row, std::min(band, given.new_rows - row)}, threads);
  }
  for (std::size_t i = 0; i < given.new_rows * given.new_columns * channels; ++i) {
    const std::size_t row = i / channels / given.new_columns;
    const std::size_t column = i / channels % given.new_columns;
    const T expected = naive_pool(pool, image, row, column, i % channels);
    if (made[i] != expected) {
      std::printf("pool, row %zu, column %zu, channel %zu: %d instead of %d\n", row, column,
                  i % channels, int(made[i]), int(expected));
      return false;
    }
  }
  return true;
}

// Sums by vectors beside those of one pair, into a third array and into one of the two.
template <typename T>
bool check_sums(Dice& dice) {
  constexpr int kLow = std::numeric_limits<T>::min();
  constexpr int kHigh = std::numeric_limits<T>::max();
  const auto scale = [&dice] {
    return arenite::Scale{std::ldexp(float(dice.between(1, 1000)), dice.between(-16, -6)),
                          dice.between(kLow, kHigh)};
  };
  arenite::Scale one = scale(), other = scale(), target = scale();
  if (!arenite::QuantisedSum::fits(one.scale / target.scale, other.scale / target.scale)) {
    return true;
  }
  arenite::QuantisedSum sum(one, other, target, dice.one_in(2));
  sum.min = dice.one_in(2) ? kLow : dice.between(kLow, kHigh);
  sum.max = dice.one_in(2) ? kHigh : dice.between(sum.min, kHigh);
  const auto add = arenite::find_quantised_add<T>(sum);
  if (add == nullptr) { return true; }
  const auto count = std::size_t(dice.between(1, 300));
  const auto left = random_elements<T>(dice, count, kLow, kHigh);
  const auto right = random_elements<T>(dice, count, kLow, kHigh);
  std::unique_ptr<T[]> made(new T[count]);
  for (std::size_t i = 0; i < count; ++i) { made[i] = sum.of(left[i], right[i]); }
  T* const to = dice.one_in(2) ? left.get() : right.get();
  add(sum, left.get(), right.get(), to, count);
  for (std::size_t i = 0; i < count; ++i) {
    if (to[i] != made[i]) {
      std::printf("sum %zu of %zu: %d instead of %d\n", i, count, int(to[i]), int(made[i]));
      return false;
    }
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 1000;
  const int seed = argc > 2 ? std::atoi(argv[2]) : 0;
  least_weight = argc > 3 ? std::atoi(argv[3]) : least_weight;
  pthreadpool_t pools[] = {pthreadpool_create(2), pthreadpool_create(3)};
  int wrong = 0;
  for (int i = 0; i < count && wrong < 3; ++i) {
    Dice dice((std::uint64_t(seed) << 32) + std::uint64_t(i));
    const bool is_depthwise = i % 5 > 2;
    const pthreadpool_t pool = dice.one_in(4) ? pools[dice.between(0, 1)] : nullptr;
    const bool is_signed = dice.one_in(2);
    const bool is_right = i % 5 == 0  ? (is_signed ? check_pool<std::int8_t>(dice, pool)
                                                   : check_pool<std::uint8_t>(dice, pool))
                          : is_signed ? check<std::int8_t>(dice, is_depthwise, pool)
                                      : check<std::uint8_t>(dice, is_depthwise, pool);
    const bool adds = is_signed ? check_sums<std::int8_t>(dice) : check_sums<std::uint8_t>(dice);
    const bool is_wide_right = dice.one_in(2)
                                   ? (is_signed ? check_wide<std::int8_t, float>(dice, pool)
                                                : check_wide<std::uint8_t, float>(dice, pool))
                               : is_signed ? check_wide<std::int8_t, std::int32_t>(dice, pool)
                                           : check_wide<std::uint8_t, std::int32_t>(dice, pool);
    if (!is_right || !adds || !is_wide_right) {
      std::printf("in case %d of seed %d\n", i, seed);
      ++wrong;
    }
  }
  for (pthreadpool_t pool : pools) { pthreadpool_destroy(pool); }
  if (wrong == 0) { std::printf("%d convolutions and pools, and sums, no difference\n", count); }
  return wrong == 0 ? 0 : 1;
}
