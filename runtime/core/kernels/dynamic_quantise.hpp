// Quantisation to uint8 by the range of the elements.
#pragma once

#include <pthreadpool.h>

#include <cstddef>
#include <cstdint>

namespace arenite {

struct DynamicScale {
  float scale;
  std::uint8_t zero_point;
};

// Quantises floats by their range and 0, as ONNX defines it, to the bit.
DynamicScale quantise_dynamically(const float* from, std::size_t count, std::uint8_t* to,
                                  pthreadpool_t threads);

}  // namespace arenite
