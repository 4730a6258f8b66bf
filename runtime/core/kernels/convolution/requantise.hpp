// Sums of products of 8-bit integers, made 8-bit integers again.
#pragma once

#include <cstddef>
#include <cstdint>

namespace arenite {

// How a sum is scaled. Whichever: the results are the same on every processor.
enum class Rounding {
  // The sum as a float, times a float, to the nearest, halves to the even one: what XNNPACK and
  // ONNX Runtime do.
  nearest_even,
  // The sum times multiplier / 2^31 * 2^shift in integers, each of the two products rounded: what
  // TensorFlow Lite's reference does.
  fixed_point,
};

// What is done to a sum before it is stored.
struct QuantisedStore {
  const std::int32_t* bias;  // by output channel; null: none
  Rounding rounding;
  const float* scales;              // by output channel, of nearest_even: that of the source times
                                    // that of the filter, over that of the result
  const std::int32_t* multipliers;  // by output channel, of fixed_point: 0 or at least 2^30
  const std::int32_t* shifts;       // by output channel, of fixed_point: -31 to 30
  std::int32_t zero_point;          // of the result
  std::int32_t min;                 // of what is stored, within its type
  std::int32_t max;
};

// Sums of some channels of some pixels. All are of one type of bytes, whichever it is.
struct Requantised {
  const std::int32_t* sums;
  std::size_t sum_stride;
  const std::int32_t* addends;  // of each pixel's sums; null: none
  std::size_t channel;          // the first
  std::size_t channels;
  std::size_t pixels;
  std::uint8_t* result;
  std::size_t pixel_stride;  // of the result
};

using Requantise = void (*)(const QuantisedStore& store, const Requantised& work);

// The one for the processor at hand.
Requantise find_requantise();

}  // namespace arenite
