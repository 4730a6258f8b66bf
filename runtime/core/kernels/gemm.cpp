#include "gemm.hpp"

#include <algorithm>

namespace arenite {

namespace {

// A tile of the product is kept in registers: kRows rows of one panel of kPanel columns.
constexpr std::size_t kRows = 4;
constexpr std::size_t kPanel = 16;

// Where it pays, the compiler makes variants and the loader picks one.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define ARENITE_VARIANTS __attribute__((target_clones("avx512f", "arch=haswell", "default")))
#else
#define ARENITE_VARIANTS
#endif

ARENITE_VARIANTS void tile_of_rows(const GemmLeft& a, const float* panel, std::size_t depth, std::size_t row,
                                   float (&sums)[kRows][kPanel]) {
  for (auto& line : sums) {
    std::fill(line, line + kPanel, 0.0f);
  }
  const float* left[kRows];
  for (std::size_t r = 0; r < kRows; ++r) {
    left[r] = a.data + (row + r) * a.row_stride;
  }
  for (std::size_t k = 0; k < depth; ++k) {
    for (std::size_t r = 0; r < kRows; ++r) {
      const float factor = left[r][k * a.depth_stride];
      for (std::size_t j = 0; j < kPanel; ++j) {
        sums[r][j] += factor * panel[k * kPanel + j];
      }
    }
  }
}

ARENITE_VARIANTS void tile_of_one(const GemmLeft& a, const float* panel, std::size_t depth, std::size_t row,
                                  float (&sums)[kPanel]) {
  std::fill(sums, sums + kPanel, 0.0f);
  const float* left = a.data + row * a.row_stride;
  for (std::size_t k = 0; k < depth; ++k) {
    const float factor = left[k * a.depth_stride];
    for (std::size_t j = 0; j < kPanel; ++j) {
      sums[j] += factor * panel[k * kPanel + j];
    }
  }
}

}  // namespace

std::size_t gemm_scratch(std::size_t columns, std::size_t depth) {
  return (columns + kPanel - 1) / kPanel * kPanel * depth;
}

void gemm_pack(const float* b, std::size_t depth_stride, std::size_t column_stride,
               std::size_t columns, std::size_t depth, float* packed) {
  for (std::size_t start = 0; start < columns; start += kPanel) {
    const std::size_t width = std::min(kPanel, columns - start);
    for (std::size_t k = 0; k < depth; ++k) {
      const float* from = b + k * depth_stride + start * column_stride;
      for (std::size_t j = 0; j < kPanel; ++j) {
        packed[j] = j < width ? from[j * column_stride] : 0.0f;
      }
      packed += kPanel;
    }
  }
}

void gemm_rows(const GemmLeft& a, const float* packed, std::size_t columns, std::size_t depth,
               std::size_t first, std::size_t count, float* c) {
  for (std::size_t start = 0; start < columns; start += kPanel) {
    const std::size_t width = std::min(kPanel, columns - start);
    const float* panel = packed + start * depth;
    std::size_t row = first;
    for (; row + kRows <= first + count; row += kRows) {
      float sums[kRows][kPanel];
      tile_of_rows(a, panel, depth, row, sums);
      for (std::size_t r = 0; r < kRows; ++r) {
        std::copy(sums[r], sums[r] + width, c + (row + r) * columns + start);
      }
    }
    for (; row < first + count; ++row) {
      float sums[kPanel];
      tile_of_one(a, panel, depth, row, sums);
      std::copy(sums, sums + width, c + row * columns + start);
    }
  }
}

}  // namespace arenite
