// Products of matrices.
#pragma once

#include <cstddef>

namespace arenite {

// Work is best split in multiples of these: columns that are packed together, and rows that are
// multiplied together on any processor.
constexpr std::size_t kGemmPanel = 16;
constexpr std::size_t kGemmRows = 24;

// Elements of packed memory that a product needs for these sizes.
std::size_t gemm_scratch(std::size_t columns, std::size_t depth);

// Rows of the first operand: row i, element k is a[i * row_stride + k * depth_stride].
struct GemmLeft {
  const float* data;
  std::size_t row_stride;
  std::size_t depth_stride;
};

// Packs the second operand: element k of column j is b[k * depth_stride + j * column_stride].
void gemm_pack(const float* b, std::size_t depth_stride, std::size_t column_stride,
               std::size_t columns, std::size_t depth, float* packed);

// Writes rows [first, first + count) of the product; c has `columns` to a row.
void gemm_rows(const GemmLeft& a, const float* packed, std::size_t columns, std::size_t depth,
               std::size_t first, std::size_t count, float* c);

// Writes columns [first, first + count) of the product of a row with a matrix as it lies in memory:
// element k of column j is b[k * stride + j], or b[j * stride + k] if it is transposed.
void gemm_row(const float* a, const float* b, bool is_transposed, std::size_t stride,
              std::size_t depth, std::size_t first, std::size_t count, float* c);

}  // namespace arenite
