// Gates of recurrent layers: products of vectors with their weights, and the cells made of them.
#pragma once

#include <cstddef>

namespace arenite {

// Units whose gates are made together. Weights are packed by tiles of so many units, the last one
// filled up with zeros; in a tile by inputs; for each input by gates; and there by the tile's
// units. It is the same for every processor.
constexpr std::size_t kGateUnits = 16;

inline std::size_t gate_tiles(std::size_t units) { return (units + kGateUnits - 1) / kGateUnits; }

// Vectors that are multiplied with the weights of a layer, and the sums of its gates: by vector,
// tile, gate and unit.
struct GateProducts {
  std::size_t num_gates;  // of the layer: 4, 3, or 1
  std::size_t count;      // of gates with sums: all; of three also the first two, or the last
  const float* vectors;
  std::size_t vector_stride;
  std::size_t num_vectors;
  std::size_t depth;
  const float* weights;  // of the first tile
  std::size_t num_tiles;
  float* sums;  // of the first tile
  std::size_t sum_stride;
};

// Adds the products to the sums. Each sum takes one product after another in the order of the
// depth: it is the same however many vectors and tiles are made together.
void multiply_gates(const GateProducts& products);

// Functions of the sums of some tiles: activations, and states of so many units.
//
// LSTM, of the gates input, forget, cell and output.
void make_lstm_cells(const float* sums, std::size_t units, float clip, float* cells, float* hidden);

// GRU, of the gates update, reset and hidden. The reset gate applies to the sums of the hidden
// gate; to these the candidates are added, a unit for each.
void make_gru_states(const float* sums, const float* candidates, std::size_t units,
                     const float* hidden, float* made);

// GRU, of which the reset gate applies to the state. First the sums of the reset gate are read,
// then the others.
void reset_gru_states(const float* sums, std::size_t units, const float* hidden, float* reset);
void update_gru_states(const float* sums, std::size_t units, const float* hidden, float* made);

// A layer of one gate: hyperbolic tangents or, if it rectifies, what is above 0.
void make_rnn_states(const float* sums, std::size_t units, bool rectifies, float* made);

}  // namespace arenite
