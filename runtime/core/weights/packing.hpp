// Where XNNPACK puts each weight when it packs them: learnt by letting it pack numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace arenite {

// Rows come in blocks that are packed alike, one after the other. Mostly a block is transposed:
// the float of row r and column c is first + c * stride + r.
struct Packing {
  std::size_t columns = 0;
  std::size_t block_rows = 0;
  std::size_t block_size = 0;  // floats
  std::size_t first = 0;
  std::size_t stride = 0;             // 0: the block is not transposed, `places` says where
  std::vector<std::uint32_t> places;  // by row and column of a block: float in the block
  std::vector<std::uint32_t> biases;  // by row: float among all
  std::size_t size = 0;               // floats up to the last that has a weight or a bias
  bool fills_all = false;             // none of these is left over

  // Returns how numbered weights of `rows` by `columns` were packed into `count` floats, or
  // nothing (no rows) if they cannot be told apart. Weight i is the number i + 1, the bias of
  // row i is -(i + 1).
  static Packing of(const float* packed, std::size_t count, std::size_t rows, std::size_t columns,
                    bool has_bias);
};

}  // namespace arenite
