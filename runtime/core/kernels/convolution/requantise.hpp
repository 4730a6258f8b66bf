// Sums of products of 8-bit integers, made 8-bit integers again.
#pragma once

#include <cstddef>
#include <cstdint>

namespace arenite {

// What is done to a sum before it is stored. A sum is scaled as a float and rounded to the nearest
// integer, halves to the even one, as XNNPACK and ONNX Runtime do: the same on every processor.
struct QuantisedStore {
  const std::int32_t* bias;  // by output channel; null: none
  const float* scales;       // by output channel: source scale * filter scale / result scale
  std::int32_t zero_point;   // of the result
  std::int32_t min;          // bounds of the result, within its type
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
