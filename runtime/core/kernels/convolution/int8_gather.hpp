// Copies runs of bytes, by the vectors of the processor that the caller is compiled for.
#pragma once

#include <cstring>

#include "kernels/convolution/int8_row_kernel.hpp"
#include "kernels/processor.hpp"

namespace arenite {

// For each pixel a vector of so many bytes, or several.
template <std::size_t Bytes>
ARENITE_INLINE void gather_by(const Int8Gathering& gathering, std::size_t size) {
  struct Vector {
    std::uint8_t bytes[Bytes];
  };
  const Int8Gathering given = gathering;  // no byte that is written may be any of it
  const std::uint8_t* from = given.from;
  std::uint8_t* to = given.to;
  for (std::size_t p = 0; p < given.pixels; ++p) {
    for (std::size_t i = 0; i < size; i += Bytes) {
      Vector bytes;
      std::memcpy(&bytes, from + i, Bytes);
      std::memcpy(to + i, &bytes, Bytes);
    }
    from += given.step;
    to += given.step_to;
  }
}

ARENITE_INLINE void gather_runs(const Int8Gathering& given) {
  switch (given.vector) {
    case 16:
      gather_by<16>(given, 16);
      break;
    case 32:
      gather_by<32>(given, 32);
      break;
    default:
      gather_by<64>(given, given.size);
  }
}

}  // namespace arenite
