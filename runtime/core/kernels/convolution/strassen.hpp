// Convolutions and products with weights in fewer multiplications, after Strassen: whole images.
#pragma once

#include <pthreadpool.h>

#include <algorithm>
#include <cstddef>

#include "kernels/convolution/convolve.hpp"
#include "kernels/convolution/packed_tile.hpp"

namespace arenite {

// A convolution of one group whose working memory holds sums of panels of the filter; where it is
// small, or there is none, the stack does.
//
// Source: S. Winograd's form of Strassen's algorithm, in D. E. Knuth, The Art of Computer
// Programming, volume 2, 4.6.4. Two pixels of the result and two panels, one of each half of the
// outputs, are made from halves of the depth by seven products where there are eight. The sums of
// the filter are made in each run, so that its weights are in memory once.
//
// Two levels save an eighth of the products again, but take as many cycles in ResNet-50: its layers
// of 512 inputs and 256 outputs or more gain 0.1 %, others lose. More and shallower products are
// stored and added, and pixels and panels are added for each of seven outer products.
struct StrassenConvolution : Convolution {
  std::size_t depth;  // of which sums are made at a time, a multiple of 16 up to kMostStrassenDepth
  void* scratch;      // aligned to 64 bytes
  std::size_t scratch_bytes;
};

constexpr bool takes_sums(std::size_t depth, std::size_t outputs) {
  return depth > 0 && depth % 16 == 0 && outputs > 0 && outputs % (2 * kPanel) == 0;
}

// More depth takes fewer loads and stores of results. Less of it leaves room for more sums on the
// stack, so that pixels are packed once: products of matrices mostly find no gap in the arena.
constexpr std::size_t kMostStrassenDepth = 512;
constexpr std::size_t kMatrixStrassenDepth = 256;

// Bytes that a pair of panels takes.
constexpr std::size_t strassen_scratch(std::size_t depth) {
  return 2 * kPanel * depth * sizeof(float);
}

// Writes the result as `convolve`, of which it differs by rounding, to the same bits on any number
// of threads and with any working memory. Some rows, few pixels and processors other than ARM64
// take no sums: they are left to `convolve`.
void convolve_strassen(const StrassenConvolution& convolution, const Image<const float>& source,
                       const Image<float>& result, RowRange rows, pthreadpool_t threads);

}  // namespace arenite
