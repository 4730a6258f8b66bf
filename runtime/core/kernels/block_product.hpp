// Products of rows of floats with weights that are stored in blocks of 4 or 8 bits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace arenite {

constexpr std::size_t kBlockPanel = 16;    // rows of weights that lie side by side
constexpr std::size_t kMostOfBlock = 256;  // weights

// Weights: codes, less the zero point of their block, times its scale.
//
// A panel is 16 rows of weights, and a group as many codes of each as fit a word of 32 bits, the
// first lowest. Of each panel all blocks follow one another, of each block its groups, of each
// group the words of the 16 rows. Scales and zero points lie in the same order. Codes behind the
// last input and rows behind the last output are present, and may be anything.
struct BlockWeights {
  const std::uint32_t* words;
  const std::byte* scales;
  const std::byte* zeros;  // null: all are 8, or 128 for 8 bits
  bool has_half_scales;    // of 16 bits
  bool has_float_zeros;    // otherwise bytes
  std::size_t bits;        // 4 or 8
  std::size_t block;       // weights of a block, at most kMostOfBlock, a multiple of 8
  std::size_t blocks;      // of a row
  std::size_t inputs;      // weights of a row
  std::size_t outputs;     // rows
  const float* bias;       // of each output; null if there is none
};

// Rows are best multiplied in groups of as many, which read each weight once.
constexpr std::size_t kBlockRows = 48;

// Writes the outputs of `num_panels` panels for up to kBlockRows rows. Each output is the same to
// the bit for any number of rows and panels.
void multiply_blocks(const BlockWeights& weights, const float* const* rows, std::size_t num_rows,
                     std::size_t first_panel, std::size_t num_panels, float* const* results);

// Bytes of a row that is rounded: to integers of 8 bits, with a scale of 32 bits for each block.
std::size_t rounded_bytes(const BlockWeights& weights);

// Rounds a row, so that the element of a block that is furthest from 0 becomes 127 or -127.
void round_row(const BlockWeights& weights, const float* row, std::byte* rounded);

// As multiply_blocks, of rounded rows: the sum of a block is an integer.
void multiply_rounded(const BlockWeights& weights, std::byte* rounded, std::size_t num_rows,
                      std::size_t first_panel, std::size_t num_panels, float* const* results);

// Writes the weights of an output.
void read_blocks(const BlockWeights& weights, std::size_t output, float* result);

}  // namespace arenite
