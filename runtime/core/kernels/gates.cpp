#include "kernels/highway_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gates.cpp"
#include "hwy/foreach_target.h"
// After them: compiled for each kind of processor.
#include <algorithm>
#include <utility>

#include "kernels/functions.hpp"
#include "kernels/gates.hpp"
#include "kernels/lanes.hpp"
#include "kernels/products_by_element.hpp"

HWY_BEFORE_NAMESPACE();
namespace arenite {
namespace HWY_NAMESPACE {
namespace {

// Vectors that are multiplied together, and parts of a tile with sums in registers: as many as
// there are, one for each vector of weights that a processor begins while it awaits a sum.
#if HWY_TARGET == HWY_AVX3
constexpr std::size_t kRows = 4, kPartsOfRows = 1, kPartsOfOne = 1, kSums = 8;
#elif HWY_TARGET == HWY_AVX2
constexpr std::size_t kRows = 3, kPartsOfRows = 1, kPartsOfOne = 2, kSums = 8;
#elif HWY_ARCH_ARM_A64
constexpr std::size_t kRows = 3, kPartsOfRows = 2, kPartsOfOne = 4, kSums = 16;
#else
constexpr std::size_t kRows = 2, kPartsOfRows = 1, kPartsOfOne = 2, kSums = 8;
#endif

template <std::size_t Gates, std::size_t First, std::size_t Count, std::size_t Rows,
          std::size_t Tiles, std::size_t Parts>
struct Block {
  std::size_t vector_stride;
  std::size_t tile_size;  // of weights

  using Sums = Lanes[Rows][Tiles][Count][Parts];

  ARENITE_LANE static float* place(float* sums, std::size_t stride, std::size_t row,
                                   std::size_t tile, std::size_t gate, std::size_t part) {
    return sums + row * stride + (tile * Gates + First + gate) * kGateUnits + part * kLanes;
  }

  // Adds the products of one element of each vector.
  ARENITE_LANE void add(const Lanes (&factors)[Rows], const float* weights, Sums& sums) const {
#pragma GCC unroll 8
    for (std::size_t tile = 0; tile < Tiles; ++tile) {
#pragma GCC unroll 4
      for (std::size_t gate = 0; gate < Count; ++gate) {
#pragma GCC unroll 4
        for (std::size_t part = 0; part < Parts; ++part) {
          const Lanes weight =
              load(weights + tile * tile_size + (First + gate) * kGateUnits + part * kLanes);
#pragma GCC unroll 4
          for (std::size_t row = 0; row < Rows; ++row) {
            sums[row][tile][gate][part] =
                multiply_add(weight, factors[row], sums[row][tile][gate][part]);
          }
        }
      }
    }
  }

#if HWY_ARCH_ARM_A64
  // Adds the products of one of four elements of each vector.
  template <int Element>
  ARENITE_LANE void add_element(const Lanes (&factors)[Rows], const float* weights,
                                Sums& sums) const {
    weights += Element * Gates * kGateUnits;
#pragma GCC unroll 8
    for (std::size_t tile = 0; tile < Tiles; ++tile) {
#pragma GCC unroll 4
      for (std::size_t gate = 0; gate < Count; ++gate) {
#pragma GCC unroll 4
        for (std::size_t part = 0; part < Parts; part += 2) {
          const float* from =
              weights + tile * tile_size + (First + gate) * kGateUnits + part * kLanes;
          add_products<Element>(from, factors, [&](std::size_t row, std::size_t i) -> Lanes& {
            return sums[row][tile][gate][part + i];
          });
        }
      }
    }
  }
#endif

#if HWY_ARCH_ARM_A64
  static constexpr std::size_t kPairs = Tiles * Count * Parts / 2;  // of vectors of an element
  // Weights of one vector are loaded so many pairs before they are needed: each is needed once, and
  // small processors would wait for it.
  static constexpr std::size_t kAhead = 3;

  // Adds the products of four elements of one vector.
  template <std::size_t... Index>
  ARENITE_LANE void add_elements(const Lanes (&factors)[Rows], const float* weights, Sums& sums,
                                 std::index_sequence<Index...>) const {
    WeightPair pairs[kAhead + 1];
    // Or places are added up by instructions of their own, for the next loop.
    __asm__("" : "+r"(weights));
    const auto enter = [&](std::size_t index) {
      const std::size_t part = index % (Parts / 2) * 2;
      const std::size_t gate = index / (Parts / 2) % Count;
      const std::size_t tile = index % kPairs / (Parts / 2 * Count);
      const std::size_t element = index / kPairs;
      pairs[index % (kAhead + 1)].load(weights + element * Gates * kGateUnits + tile * tile_size +
                                       (First + gate) * kGateUnits + part * kLanes);
    };
    const auto multiply = [&](auto constant) {
      constexpr std::size_t kIndex = constant;
      if constexpr (kIndex + kAhead < sizeof...(Index)) { enter(kIndex + kAhead); }
      constexpr std::size_t kPart = kIndex % (Parts / 2) * 2;
      constexpr std::size_t kGate = kIndex / (Parts / 2) % Count;
      constexpr std::size_t kTile = kIndex % kPairs / (Parts / 2 * Count);
      add_products<static_cast<int>(kIndex / kPairs)>(
          pairs[kIndex % (kAhead + 1)], factors, [&](std::size_t row, std::size_t i) -> Lanes& {
            return sums[row][kTile][kGate][kPart + i];
          });
    };
#pragma GCC unroll 3
    for (std::size_t index = 0; index < kAhead; ++index) { enter(index); }
    (multiply(std::integral_constant<std::size_t, Index>()), ...);
  }
#endif

  ARENITE_LANE void multiply(const float* vectors, std::size_t depth, const float* weights,
                             float* made, std::size_t stride) const {
    Sums sums;
#pragma GCC unroll 4
    for (std::size_t row = 0; row < Rows; ++row) {
#pragma GCC unroll 8
      for (std::size_t tile = 0; tile < Tiles; ++tile) {
#pragma GCC unroll 4
        for (std::size_t gate = 0; gate < Count; ++gate) {
#pragma GCC unroll 4
          for (std::size_t part = 0; part < Parts; ++part) {
            sums[row][tile][gate][part] = load(place(made, stride, row, tile, gate, part));
          }
        }
      }
    }
    std::size_t k = 0;
    Lanes factors[Rows];
#if HWY_ARCH_ARM_A64
    for (; k + 4 <= depth; k += 4) {
#pragma GCC unroll 4
      for (std::size_t row = 0; row < Rows; ++row) {
        factors[row] = load(vectors + row * vector_stride + k);
      }
      if constexpr (Rows == 1) {
        add_elements(factors, weights, sums, std::make_index_sequence<4 * kPairs>());
      } else {
        add_element<0>(factors, weights, sums);
        add_element<1>(factors, weights, sums);
        add_element<2>(factors, weights, sums);
        add_element<3>(factors, weights, sums);
      }
      weights += 4 * Gates * kGateUnits;
    }
#endif
    for (; k < depth; ++k) {
#pragma GCC unroll 4
      for (std::size_t row = 0; row < Rows; ++row) {
        factors[row] = all_lanes(vectors[row * vector_stride + k]);
      }
      add(factors, weights, sums);
      weights += Gates * kGateUnits;
    }
#pragma GCC unroll 4
    for (std::size_t row = 0; row < Rows; ++row) {
#pragma GCC unroll 8
      for (std::size_t tile = 0; tile < Tiles; ++tile) {
#pragma GCC unroll 4
        for (std::size_t gate = 0; gate < Count; ++gate) {
#pragma GCC unroll 4
          for (std::size_t part = 0; part < Parts; ++part) {
            store(sums[row][tile][gate][part], place(made, stride, row, tile, gate, part));
          }
        }
      }
    }
  }
};

template <std::size_t Gates, std::size_t First, std::size_t Count, std::size_t Rows,
          std::size_t Tiles, std::size_t Parts>
HWY_NOINLINE void multiply_block(const GateProducts& p, std::size_t row, std::size_t tile) {
  const std::size_t tile_size = p.depth * Gates * kGateUnits;
  const Block<Gates, First, Count, Rows, Tiles, Parts> block{p.vector_stride, tile_size};
  float* sums = p.sums + row * p.sum_stride + tile * Gates * kGateUnits;
  const float* weights = p.weights + tile * tile_size;
  for (std::size_t unit = 0; unit < kGateUnits; unit += Parts * kLanes) {
    block.multiply(p.vectors + row * p.vector_stride, p.depth, weights + unit, sums + unit,
                   p.sum_stride);
  }
}

template <std::size_t Gates, std::size_t First, std::size_t Count>
void multiply_all(const GateProducts& p) {
  constexpr std::size_t kTiles = kSums < Count * kPartsOfOne ? 1 : kSums / (Count * kPartsOfOne);
  std::size_t row = 0;
  // The weights of a tile stay in the cache for all vectors.
  for (std::size_t tile = 0; p.num_vectors > 1 && tile < p.num_tiles; ++tile) {
    for (row = 0; row + kRows <= p.num_vectors; row += kRows) {
      multiply_block<Gates, First, Count, kRows, 1, kPartsOfRows>(p, row, tile);
    }
    if (p.num_vectors - row >= 2 && kRows > 2) {
      multiply_block<Gates, First, Count, 2, 1, kPartsOfRows>(p, row, tile);
      row += 2;
    }
    if (row < p.num_vectors) {
      multiply_block<Gates, First, Count, 1, 1, kPartsOfOne>(p, row, tile);
    }
  }
  if (p.num_vectors != 1) { return; }
  std::size_t tile = 0;
  for (; tile + kTiles <= p.num_tiles; tile += kTiles) {
    multiply_block<Gates, First, Count, 1, kTiles, kPartsOfOne>(p, 0, tile);
  }
  for (; tile < p.num_tiles; ++tile) {
    multiply_block<Gates, First, Count, 1, 1, kPartsOfOne>(p, 0, tile);
  }
}

void multiply_vectors(const GateProducts& p) {
  if (p.num_gates == 4) { return multiply_all<4, 0, 4>(p); }
  if (p.num_gates == 1) { return multiply_all<1, 0, 1>(p); }
  if (p.count == 3) { return multiply_all<3, 0, 3>(p); }
  if (p.count == 2) { return multiply_all<3, 0, 2>(p); }
  multiply_all<3, 2, 1>(p);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace arenite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace arenite {

namespace {

// Calls work(tile, first, count) for the units of each tile.
template <typename Work>
ARENITE_INLINE void by_tiles(std::size_t units, const Work& work) {
  for (std::size_t first = 0; first < units; first += kGateUnits) {
    work(first / kGateUnits, first, std::min(kGateUnits, units - first));
  }
}

// A loop over a whole tile becomes vectors. Elements beyond the last unit are zeros, and not kept.
struct Tile {
  float values[kGateUnits];

  ARENITE_INLINE Tile() : values{} {}
  ARENITE_INLINE Tile(const float* from, std::size_t count) : values{} {
    if (count == kGateUnits) {
      std::copy_n(from, kGateUnits, values);
    } else {
      std::copy_n(from, count, values);
    }
  }
  ARENITE_INLINE void keep(float* to, std::size_t count) const {
    if (count == kGateUnits) {
      std::copy_n(values, kGateUnits, to);
    } else {
      std::copy_n(values, count, to);
    }
  }
};

// The sigmoid of what opens or closes a gate. A closed one lets 4e-18 pass: with less, what it
// makes is subnormal, with which processors compute in a hundred times the time.
ARENITE_INLINE float gate_of(float x) {
  return logistic_within(bounded(-x, kBounds.lowest_power, kBounds.closed_gate));
}

// Writes what `element(tile, i, gates, state)` makes of each state of a GRU.
template <typename Element>
void make_states(const float* sums, std::size_t units, const float* from, float* to,
                 const Element& element) {
  with_widest_vectors([=] {
    by_tiles(units, [=](std::size_t tile, std::size_t first, std::size_t count) {
      const float* gates = sums + tile * 3 * kGateUnits;
      Tile states(from + first, count);
      for (std::size_t i = 0; i < kGateUnits; ++i) {
        states.values[i] = element(tile, i, gates, states.values[i]);
      }
      states.keep(to + first, count);
    });
  });
}

// The state of a GRU between its candidate and what it was.
ARENITE_INLINE float updated(float gate, float candidate, float state) {
  const float update = gate_of(gate);
  return (1.0f - update) * candidate + update * state;
}

}  // namespace

void multiply_gates(const GateProducts& products) {
  static const auto multiply = ARENITE_COPY(multiply_vectors);
  multiply(products);
}

void make_lstm_cells(const float* sums, std::size_t units, float clip, float* cells,
                     float* hidden) {
  with_widest_vectors([=] {
    by_tiles(units, [=](std::size_t tile, std::size_t first, std::size_t count) {
      const float* gates = sums + tile * 4 * kGateUnits;
      Tile cell(cells + first, count);
      Tile made;
      for (std::size_t i = 0; i < kGateUnits; ++i) {
        const float added = gate_of(gates[i]) * hyperbolic_tangent(gates[2 * kGateUnits + i]);
        const float value = gate_of(gates[kGateUnits + i]) * cell.values[i] + added;
        cell.values[i] = std::min(std::max(value, -clip), clip);
        made.values[i] = gate_of(gates[3 * kGateUnits + i]) * hyperbolic_tangent(cell.values[i]);
      }
      cell.keep(cells + first, count);
      made.keep(hidden + first, count);
    });
  });
}

void make_gru_states(const float* sums, const float* candidates, std::size_t units,
                     const float* hidden, float* made) {
  make_states(sums, units, hidden, made,
              [=](std::size_t tile, std::size_t i, const float* gates, float state) {
                const float from_past = gate_of(gates[kGateUnits + i]) * gates[2 * kGateUnits + i];
                const float sum = candidates[tile * kGateUnits + i] + from_past;
                return updated(gates[i], hyperbolic_tangent(sum), state);
              });
}

void reset_gru_states(const float* sums, std::size_t units, const float* hidden, float* reset) {
  make_states(sums, units, hidden, reset,
              [](std::size_t, std::size_t i, const float* gates, float state) {
                return state * gate_of(gates[kGateUnits + i]);
              });
}

void update_gru_states(const float* sums, std::size_t units, const float* hidden, float* made) {
  make_states(sums, units, hidden, made,
              [](std::size_t, std::size_t i, const float* gates, float state) {
                return updated(gates[i], hyperbolic_tangent(gates[2 * kGateUnits + i]), state);
              });
}

void make_rnn_states(const float* sums, std::size_t units, bool rectifies, float* made) {
  with_widest_vectors([=] {
    by_tiles(units, [=](std::size_t tile, std::size_t first, std::size_t count) {
      Tile states(sums + tile * kGateUnits, kGateUnits);
      for (float& state : states.values) {
        state = rectifies ? std::max(state, 0.0f) : hyperbolic_tangent(state);
      }
      states.keep(made + first, count);
    });
  });
}

}  // namespace arenite
#endif
