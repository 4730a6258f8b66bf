// Tiles of 8-bit convolutions on x86-64, whose sums stay in registers until they are bytes again.
// Include it as int8_vectors.hpp.
#pragma once

#include <array>
#include <utility>

#include "kernels/convolution/int8_vectors.hpp"

namespace arenite {

namespace {

// Adds all products of some pixels to their sums.
template <typename Vectors, std::size_t Pixels, std::size_t Parts>
ARENITE_FOR_VECTORS ARENITE_INLINE void add_all(const Int8Tile& tile, std::size_t pixel,
                                                typename Vectors::Vector (&sums)[Pixels * Parts]) {
  using Vector = typename Vectors::Vector;
  // An address is one of two pixels and a register, scaled by 1, 2, 4 or 8.
  const std::size_t step = tile.step;
  const std::size_t three = opaque(3 * step);
  const std::size_t five = opaque(5 * step);
  const std::size_t seven = opaque(7 * step);
  const std::int8_t* weights = tile.weights;
  for (std::size_t run = 0; run < tile.num_runs; ++run) {
    const std::uint8_t* from = tile.runs[run] + pixel * step;
    const std::uint8_t* end = from + tile.quads * Vectors::kQuadBytes;
    do {
      const std::uint8_t* behind = opaque(from + (Vectors::kSpan == 7 ? seven : five));
      const std::size_t away[] = {0,    step,      2 * step, three,   4 * step,
                                  five, 2 * three, seven,    8 * step};
#pragma GCC unroll 2
      for (std::size_t pass = 0; pass < Vectors::kPasses; ++pass) {
        Vector factors[Parts];
#pragma GCC unroll 2
        for (std::size_t j = 0; j < Parts; ++j) {
          factors[j] = Vectors::factors(weights + j * Vectors::part_bytes(tile.panel_bytes), pass);
        }
#pragma GCC unroll 16
        for (std::size_t p = 0; p < Pixels; ++p) {
          const std::uint8_t* at =
              p < Vectors::kSpan ? from + away[p] : behind + away[p - Vectors::kSpan];
          const Vector source = Vectors::source(at, pass);
#pragma GCC unroll 2
          for (std::size_t j = 0; j < Parts; ++j) {
            Vectors::add_products(sums[p * Parts + j], source, factors[j]);
          }
        }
        if (pass + 1 < Vectors::kPasses) {
          asm volatile("" ::: "memory");  // weights are loaded again: registers are few
        }
      }
      from += Vectors::kQuadBytes;
      weights += kInt8Panel * kInt8Quad;
    } while (from < end);
  }
}

// Adds the products of one quad of the depth.
template <typename Vectors, std::size_t Pixels, std::size_t Parts>
ARENITE_FOR_VECTORS ARENITE_INLINE void add_quad(const Int8Tile& tile, const std::uint8_t* from,
                                                 const std::int8_t* weights, std::size_t quad,
                                                 typename Vectors::Vector* sums) {
#pragma GCC unroll 4
  for (std::size_t p = 0; p < Pixels; ++p) {
    const auto source = Vectors::source(from + p * tile.step + quad * Vectors::kQuadBytes, 0);
#pragma GCC unroll 2
    for (std::size_t j = 0; j < Parts; ++j) {
      const std::int8_t* const part = weights + j * Vectors::part_bytes(tile.panel_bytes);
      Vectors::add_products(sums[p * Parts + j], source,
                            Vectors::factors(part + quad * kInt8Panel * kInt8Quad, 0));
    }
  }
}

// Adds all products of few pixels, to `Chains` sums each in turn: a sum alone would wait for the
// product before it.
template <typename Vectors, std::size_t Pixels, std::size_t Parts, std::size_t Chains>
ARENITE_FOR_VECTORS ARENITE_INLINE void add_in_chains(const Int8Tile& tile, std::size_t pixel,
                                                      typename Vectors::Vector* sums) {
  constexpr std::size_t kCount = Pixels * Parts;
  typename Vectors::Vector chains[Chains * kCount];
#pragma GCC unroll 8
  for (std::size_t v = 0; v < Chains * kCount; ++v) {
    chains[v] = v < kCount ? sums[v] : Vectors::all(0);
  }
  const std::int8_t* weights = tile.weights;
  for (std::size_t run = 0; run < tile.num_runs; ++run) {
    const std::uint8_t* from = tile.runs[run] + pixel * tile.step;
    std::size_t quad = 0;
    for (; quad + Chains <= tile.quads; quad += Chains) {
#pragma GCC unroll 4
      for (std::size_t c = 0; c < Chains; ++c) {
        add_quad<Vectors, Pixels, Parts>(tile, from, weights, quad + c, chains + c * kCount);
      }
    }
    for (; quad < tile.quads; ++quad) {
      add_quad<Vectors, Pixels, Parts>(tile, from, weights, quad, chains);
    }
    weights += tile.quads * kInt8Panel * kInt8Quad;
  }
#pragma GCC unroll 8
  for (std::size_t v = 0; v < kCount; ++v) {
    sums[v] = chains[v];
#pragma GCC unroll 4
    for (std::size_t c = 1; c < Chains; ++c) {
      sums[v] = Vectors::add(sums[v], chains[c * kCount + v]);
    }
  }
}

// `Parts` vectors of channels of each pixel.
template <typename Vectors, std::size_t Pixels, std::size_t Parts>
ARENITE_FOR_VECTORS void make_pixels(const Int8Tile& tile, std::size_t pixel) {
  using Vector = typename Vectors::Vector;
  constexpr std::size_t kLanes = Vectors::kLanes;
  constexpr std::size_t kCount = Pixels * Parts;
  Vector sums[kCount];
  if (tile.is_first) {
#pragma GCC unroll 28
    for (std::size_t v = 0; v < kCount; ++v) {
      sums[v] = Vectors::load(tile.start + v % Parts * kLanes);
    }
  } else {
    const std::int32_t* from = tile.sums_of(pixel);
    const std::size_t step_sums = tile.step_sums;
#pragma GCC unroll 28
    for (std::size_t v = 0; v < kCount; ++v) {
      sums[v] = Vectors::load(from + v / Parts * step_sums + v % Parts * kLanes);
    }
  }
  if (tile.addends != nullptr) {
#pragma GCC unroll 28
    for (std::size_t v = 0; v < kCount; ++v) {
      sums[v] = Vectors::add(sums[v], Vectors::all(tile.addends[pixel + v / Parts]));
    }
  }
  constexpr std::size_t kChains = Vectors::kPasses == 1 && kCount <= 4 ? (kCount < 4 ? 4 : 2) : 1;
  if constexpr (kChains > 1) {
    add_in_chains<Vectors, Pixels, Parts, kChains>(tile, pixel, sums);
  } else {
    add_all<Vectors, Pixels, Parts>(tile, pixel, sums);
  }
  if (!tile.is_last) {
    std::int32_t* to = tile.sums_of(pixel);
    const std::size_t step_sums = tile.step_sums;
#pragma GCC unroll 28
    for (std::size_t v = 0; v < kCount; ++v) {
      Vectors::store(sums[v], to + v / Parts * step_sums + v % Parts * kLanes);
    }
    return;
  }
  const Limits<Vectors> limits(tile.store);
  typename Vectors::Floats scales[Parts];
#pragma GCC unroll 2
  for (std::size_t j = 0; j < Parts; ++j) {
    scales[j] = Vectors::load_floats(tile.scales + j * kLanes);
  }
  // A product that is too low becomes the lowest integer, and saturates. One that is too high
  // would become the lowest, too.
  if (tile.may_overflow) {
#pragma GCC unroll 28
    for (std::size_t v = 0; v < kCount; ++v) {
      sums[v] = Vectors::nearest(
          Vectors::smaller(Vectors::product(sums[v], scales[v % Parts]), limits.high));
    }
  } else {
#pragma GCC unroll 28
    for (std::size_t v = 0; v < kCount; ++v) {
      sums[v] = Vectors::nearest(Vectors::product(sums[v], scales[v % Parts]));
    }
  }
  // Four vectors are packed together; a store takes up to 16 channels of a pixel.
  constexpr std::size_t kTogether = Parts * kLanes < 16 ? Parts : 16 / kLanes;
  constexpr std::size_t kWidth = kTogether * kLanes;
  std::uint8_t* to = tile.to + pixel * tile.step_to;
  const bool is_dense = tile.step_to == Parts * kLanes && tile.channels == tile.step_to;
  const std::size_t last = tile.channels - (Parts - kTogether) * kLanes;
#pragma GCC unroll 7
  for (std::size_t v = 0; v < kCount; v += 4) {
    constexpr std::size_t kLast = kCount - 1;
    const Vector narrow = narrowed<Vectors>(sums[v], sums[v + 1 < kLast ? v + 1 : kLast],
                                            sums[v + 2 < kLast ? v + 2 : kLast],
                                            sums[v + 3 < kLast ? v + 3 : kLast], limits);
    const Vector bytes = Vectors::in_order(narrow);
    if (is_dense && v + 4 <= kCount) {
      Vectors::store(bytes, to + v * kLanes);
      continue;
    }
#pragma GCC unroll 4
    for (std::size_t i = 0; i < 4; i += kTogether) {
      if (v + i < kCount) {
        const std::size_t j = (v + i) % Parts;
        Vectors::store_some(Vectors::part(bytes, i), j + kTogether == Parts ? last : kWidth,
                            to + (v + i) / Parts * tile.step_to + j * kLanes);
      }
    }
  }
}

template <typename Vectors, std::size_t Parts, std::size_t... Less>
constexpr std::array<MakeInt8Pixels, sizeof...(Less)> pixel_kernels(std::index_sequence<Less...>) {
  return {make_pixels<Vectors, Less + 1, Parts>...};
}

// Kernels for one vector of channels or two, of 1 to `Most` pixels.
template <typename Vectors, std::size_t Parts, std::size_t Most>
Int8Tiles tiles_of() {
  static constexpr auto kKernels = pixel_kernels<Vectors, Parts>(std::make_index_sequence<Most>());
  return {Parts * Vectors::kLanes, Most, kKernels.data()};
}

}  // namespace

}  // namespace arenite
