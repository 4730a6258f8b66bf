// What an instruction set brings to convolutions of 8-bit integers (convolve_int8.cpp,
// depthwise_int8.cpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/convolution/convolve_int8.hpp"
#include "kernels/convolution/depthwise_int8.hpp"
#include "kernels/processor.hpp"

namespace arenite {

// Bytes of the widest vector: kernels may read or write so much beyond the end of a row.
constexpr std::size_t kInt8Vector = 64;
// Output channels that one part of the work makes.
constexpr std::size_t kInt8Block = 256;
// Output channels and pixels of a tile, at most.
constexpr std::size_t kInt8TileChannels = 32;
constexpr std::size_t kInt8TilePixels = 16;

// What is known of the results of a tile.
enum class Bounds {
  any,
  // Those of signed bytes, of a whole panel, and sums take no pieces of depth and no addends.
  int8,
  // The same, sums fit kRounder's last bits and scaled ones 16 bits. Sums start with kRounder's
  // bits added.
  small_int8,
};

// Pixels of a row, and the panels of weights that make some output channels of them.
struct Int8Tile {
  const std::uint8_t* const* runs;  // start of each run of depth under the first pixel
  std::size_t num_runs;
  std::size_t quads;  // of a run
  std::size_t step;   // bytes from one pixel to the next
  const std::int8_t* weights;
  std::size_t panel_bytes;
  const std::int32_t* start;  // of the sums, by channel
  const float* scales;        // by channel
  std::size_t channels;       // that are stored
  const QuantisedStore& store;
  bool may_overflow;  // a scale is not below 1, so that scaled sums may not fit 32 bits
  bool has_least;     // a weight may be -128, so that two products may not fit 16 bits
  std::uint8_t* to;
  std::size_t step_to;
  const std::int32_t* addends;  // of the sums, by pixel; null: none
  // Sums by pixel: of a depth that is taken in pieces, or for `finish`. The first piece does not
  // read them; the last one writes bytes instead.
  std::int32_t* sums;
  std::size_t step_sums;
  std::size_t first_sums;  // pixel that the sums begin with
  bool is_first;
  bool is_last;
  Bounds bounds;

  std::int32_t* sums_of(std::size_t pixel) const { return sums + (pixel - first_sums) * step_sums; }
};

// Sums of some pixels, of which the zero points of the filter are not part yet.
struct Int8Finish {
  std::int32_t* sums;
  std::size_t step_sums;
  std::size_t pixels;
  std::size_t channels;
  const std::int32_t* row_sums;  // the negative sum of the source, by pixel; null: no zero points
  const std::int32_t* zero_points;  // by channel
  const float* scales;              // by channel
  const float* bias;                // by channel; null: none
  float min;
  float max;
  std::uint8_t* to;  // null: there are more sums to come
  std::size_t step_to;
  bool is_float;  // otherwise sums stay integers
};

// Makes a few pixels of a tile, from one of them on.
using MakeInt8Pixels = void (*)(const Int8Tile& tile, std::size_t pixel);

// Kernels for up to so many output channels, by number of pixels.
struct Int8Tiles {
  std::size_t channels;
  std::size_t pixels;  // at most
  const MakeInt8Pixels* make;
};

// Runs of equal length, one a pixel, to be copied.
struct Int8Gathering {
  const std::uint8_t* from;
  std::size_t step;
  std::size_t size;    // bytes of a run
  std::size_t vector;  // bytes of a copy: 16, 32 or a multiple of 64; the rest is ignored
  std::size_t pixels;
  std::uint8_t* to;
  std::size_t step_to;
};

struct Int8Kernel {
  bool is_signed;             // of the source's bytes
  std::size_t element_bytes;  // 1: bytes; 2: 16-bit integers, as `widen` writes them
  Int8Tiles narrow;
  Int8Tiles wide;

  // These write up to kInt8Vector bytes too much, and read only what is given.
  void (*copy)(const std::uint8_t* from, std::size_t count, std::uint8_t flip, std::uint8_t* to);
  // Writes each quad of bytes as 16-bit integers: the first, third, second and fourth; null for
  // kernels that take bytes.
  void (*widen)(const std::uint8_t* from, std::size_t count, std::uint8_t flip, std::uint8_t* to);
  void (*fill)(std::uint16_t pattern, std::size_t bytes, std::uint8_t* to);
  void (*gather)(const Int8Gathering& given);
  // The sum of the elements of some quads.
  std::uint32_t (*add_up)(const std::uint8_t* from, std::size_t quads);
  // Whether a weight of some quads of a panel is -128; null for kernels that need not know.
  bool (*has_least)(const std::int8_t* weights, std::size_t quads);
  // Writes sums as results that are not bytes.
  void (*finish)(const Int8Finish& given);
  bool takes_small_sums = false;
};

// Each is called only where the processor has the instructions.
const Int8Kernel& int8_kernel_for_vnni();
const Int8Kernel& int8_kernel_for_avx2();
const Int8Kernel& int8_kernel_for_sse2();
const Int8Kernel& int8_kernel_for_neon();
const Int8Kernel& int8_kernel_for_any();

// Rows of a depthwise convolution, for some channels, whichever sign the bytes have.
struct Int8DepthwiseRows {
  const Int8DepthwiseConvolution& convolution;
  const Image<const std::uint8_t>& source;
  const Image<std::uint8_t>& result;
  RowRange rows;
  std::size_t channel;       // of the source, the first of those wanted
  std::size_t num_channels;  // of the source
  std::uint8_t flip;         // of the bytes, to make them unsigned
  std::int32_t zero;         // the source's zero point as flipped

  Int8DepthwiseRows part(std::size_t first, std::size_t count) const {
    return {convolution, source, result, rows, channel + first, count, flip, zero};
  }

  std::size_t multiplier() const { return result.channels / source.channels; }
};

struct Int8DepthwiseKernel {
  std::size_t channels;  // that are made together
  void (*make)(const Int8DepthwiseRows& rows);
};

// The kernel for any processor and convolution.
Int8DepthwiseKernel int8_depthwise_for_any();
// Kernels for some; null where the convolution or the processor does not suit.
const Int8DepthwiseKernel* int8_depthwise_for_vnni(const Int8DepthwiseRows& rows);
const Int8DepthwiseKernel* int8_depthwise_for_avx2(const Int8DepthwiseRows& rows);
const Int8DepthwiseKernel* int8_depthwise_for_neon(const Int8DepthwiseRows& rows);

// Whether the sums of so many products are small; then it adds kRounder's bits to their start.
inline bool start_small(const float* scales, std::size_t depth, std::int32_t* start) {
  constexpr float kMostSum = 1 << 22;
  constexpr float kMostScaled = (1 << 15) - 2;
  const float products = static_cast<float>(depth) * (1 << 14);
  if (products >= kMostSum) { return false; }
  std::uint32_t misfits = 0;
  for (std::size_t j = 0; j < kInt8Panel; ++j) {
    const float sum = std::fabs(static_cast<float>(start[j])) + products;
    misfits |= sum < kMostSum && sum * std::fabs(scales[j]) < kMostScaled ? 0 : 1;
  }
  if (misfits != 0) { return false; }
  std::uint32_t bits;
  std::memcpy(&bits, &kRounder, sizeof bits);
  for (std::size_t j = 0; j < kInt8Panel; ++j) {
    start[j] = static_cast<std::int32_t>(static_cast<std::uint32_t>(start[j]) + bits);
  }
  return true;
}

template <std::size_t Bytes>
ARENITE_INLINE void gather_by(const Int8Gathering& gathering, std::size_t size) {
  struct Vector {
    std::uint8_t bytes[Bytes];
  };
  const Int8Gathering given = gathering;  // a copy: `to` may alias the original
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

// Inline, so that it is compiled for the instructions of its caller.
ARENITE_INLINE void gather_runs(const Int8Gathering& given) {
  switch (given.vector) {
    case 16: gather_by<16>(given, 16); break;
    case 32: gather_by<32>(given, 32); break;
    default: gather_by<64>(given, given.size);
  }
}

// Inline, for the same reason.
ARENITE_INLINE void finish_sums(const Int8Finish& given) {
  const std::size_t channels = given.channels;
  for (std::size_t p = 0; p < given.pixels; ++p) {
    std::int32_t* __restrict sums = given.sums + p * given.step_sums;
    if (given.row_sums != nullptr) {
      const auto row_sum = static_cast<std::uint32_t>(given.row_sums[p]);
      for (std::size_t j = 0; j < channels; ++j) {
        sums[j] =
            static_cast<std::int32_t>(static_cast<std::uint32_t>(sums[j]) +
                                      row_sum * static_cast<std::uint32_t>(given.zero_points[j]));
      }
    }
    if (given.to == nullptr) { continue; }
    if (!given.is_float) {
      std::memcpy(given.to + p * given.step_to, sums, channels * sizeof(std::int32_t));
      continue;
    }
    auto* __restrict to = reinterpret_cast<float*>(given.to + p * given.step_to);
    const float min = given.min;
    const float max = given.max;
    const float* scales = given.scales;
    if (given.bias == nullptr) {
      for (std::size_t j = 0; j < channels; ++j) {
        to[j] = std::min(std::max(static_cast<float>(sums[j]) * scales[j], min), max);
      }
    } else {
      const float* bias = given.bias;
      for (std::size_t j = 0; j < channels; ++j) {
        to[j] = std::min(std::max(static_cast<float>(sums[j]) * scales[j] + bias[j], min), max);
      }
    }
  }
}

// For kernels without vectors of their own for these.
inline void copy_int8(const std::uint8_t* from, std::size_t count, std::uint8_t flip,
                      std::uint8_t* to) {
  for (std::size_t i = 0; i < count; ++i) { to[i] = from[i] ^ flip; }
}

inline void fill_int8(std::uint16_t pattern, std::size_t bytes, std::uint8_t* to) {
  std::memset(to, pattern & 0xff, bytes);
}

inline void gather_int8(const Int8Gathering& given) { gather_runs(given); }

inline void finish_int8(const Int8Finish& given) { finish_sums(given); }

template <typename Byte>
std::uint32_t add_up_int8(const std::uint8_t* from, std::size_t quads) {
  std::int32_t sum = 0;
  for (std::size_t i = 0; i < quads * kInt8Quad; ++i) { sum += static_cast<Byte>(from[i]); }
  return static_cast<std::uint32_t>(sum);
}

}  // namespace arenite
