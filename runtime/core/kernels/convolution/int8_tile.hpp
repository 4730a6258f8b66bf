// Products of a tile of the source and panels of a packed filter, by the processor's means.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/convolution/convolve_int8.hpp"

namespace arenite {

// Output channels whose sums a tile holds at once.
constexpr std::size_t kInt8Block = 256;
// Pixels of a tile, at most.
constexpr std::size_t kInt8TilePixels = 14;
// Between the sums of one pixel and the next: not a power of two, or they would share few sets of
// the cache.
constexpr std::size_t kInt8SumStride = kInt8Block + kInt8Panel;
constexpr std::size_t kInt8SlabBytes = 16 * 1024;

// Pixels of the source in the form that the products take them in: depth side by side, whole quads.
struct Int8Tile {
  std::byte* slab;
  std::size_t stride;  // bytes
  std::size_t pixels;
  std::size_t quads;
};

// Bytes that lie in runs, each of so many bytes and so far from the one before.
struct Int8Runs {
  const std::uint8_t* data;
  std::size_t size;
  std::size_t count;
  std::size_t step;
  std::size_t step_to;  // bytes, in the slab
  std::uint8_t flip;    // of their signs
  std::int32_t zero;    // their zero point as flipped
};

struct Int8TileKernel {
  // Elements are bytes of either sign, or what a byte is above the zero point in 16 bits.
  enum class Form { unsigned_bytes, signed_bytes, differences };

  Form form;
  std::size_t pixels;  // of a tile, at most
  std::size_t quads;   // of a tile, at most
  std::size_t stride;  // of a tile, bytes

  // Copies runs of bytes into the form.
  void (*copy)(const Int8Runs& runs, std::byte* to);
  // Makes sums of one or two panels. They begin as `start`, of a panel's channels, where it is not
  // null and as they are otherwise. `weights` are the first panel's, without its sums.
  void (*multiply)(const Int8Tile& tile, const std::int8_t* weights, std::size_t panel_bytes,
                   std::size_t panels, const std::int32_t* start, std::int32_t* sums);

  std::size_t element_bytes() const { return form == Form::differences ? 2 : 1; }
};

// The one for any processor, and those for some: null where the one at hand has no such means.
Int8TileKernel int8_tile_for_any();
const Int8TileKernel* int8_tile_for_x86();
const Int8TileKernel* int8_tile_for_arm();

}  // namespace arenite
