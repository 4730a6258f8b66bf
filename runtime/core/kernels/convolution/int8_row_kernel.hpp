// What a processor brings to convolutions of 8-bit integers by rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/convolution/int8_panels.hpp"

namespace arenite {

// Tiles of some output channels, of one pixel, of two and so on.
struct Int8Tiles {
  std::size_t channels;
  std::size_t pixels;  // at most
  const MakeInt8Tile* make;
};

// Runs of as many bytes for some pixels.
struct Int8Gathering {
  const std::uint8_t* from;
  std::size_t step;
  std::size_t size;    // bytes of a run
  std::size_t vector;  // bytes that it is copied by: what is behind it is read and written, too
  std::size_t pixels;
  std::uint8_t* to;
  std::size_t step_to;
};

struct Int8RowKernel {
  // Of those that tiles take: bytes, or those in 16 bits as `widen` writes them.
  std::size_t element_bytes;
  Int8Tiles narrow;  // what has no more channels
  Int8Tiles wide;    // whole panels

  // All write up to the widest vector too much, and read nothing but what is given.
  void (*copy)(const std::uint8_t* from, std::size_t count, std::uint8_t flip, std::uint8_t* to);
  // Quads of bytes become quads of 16 bits, in the order in which tiles take them; null for bytes.
  void (*widen)(const std::uint8_t* from, std::size_t count, std::uint8_t flip, std::uint8_t* to);
  void (*fill)(std::uint16_t pattern, std::size_t bytes, std::uint8_t* to);
  void (*gather)(const Int8Gathering& given);
  // The sum of so many quads of elements.
  std::uint32_t (*add_up)(const std::uint8_t* from, std::size_t quads);
};

// Those of some processors: null where the one at hand has no such means.
const Int8RowKernel* int8_row_kernel_for_vnni();
const Int8RowKernel* int8_row_kernel_for_avx2();

}  // namespace arenite
