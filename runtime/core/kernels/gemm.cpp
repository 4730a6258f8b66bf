#include "gemm.hpp"

#include <algorithm>

#include "kernels/convolution/convolve.hpp"
#include "kernels/convolution/packed_tile.hpp"
#include "kernels/parallel.hpp"
#include "kernels/processor.hpp"

namespace arenite {

namespace {

// The product is made in tiles whose sums fit the registers: some rows of a panel of columns.
static_assert(kPanel == kGemmPanel);
constexpr std::size_t kTileRows = 8;   // at most
constexpr std::size_t kTallRows = 16;  // of a tall tile
constexpr std::size_t kMostPanels = 2;

// Adds up Rows x Width sums of each panel in variables of its own: written through a pointer, they
// would have to be stored at each step, as `panel` could see them.
template <std::size_t Rows, std::size_t Width, std::size_t Panels = 1>
ARENITE_INLINE void multiply_tile(const float* const* left, std::size_t stride, const float* panel,
                                  std::size_t depth, float* sums) {
  float accumulators[Panels][Rows][Width] = {};
  for (std::size_t k = 0; k < depth; ++k) {
#pragma GCC unroll 8
    for (std::size_t r = 0; r < Rows; ++r) {
      const float factor = left[r][k * stride];
#pragma GCC unroll 2
      for (std::size_t p = 0; p < Panels; ++p) {
#pragma GCC unroll 1
        for (std::size_t j = 0; j < Width; ++j) {
          accumulators[p][r][j] += factor * panel[(p * depth + k) * kPanel + j];
        }
      }
    }
  }
  for (std::size_t r = 0; r < Rows; ++r) {
    for (std::size_t p = 0; p < Panels; ++p) {
      std::copy_n(accumulators[p][r], Width, sums + (r * kMostPanels + p) * kPanel);
    }
  }
}

// A row alone: every fourth element has sums of its own, so that additions do not wait.
ARENITE_INLINE void multiply_row(const float* left, std::size_t stride, const float* panel,
                                 std::size_t depth, float* sums) {
  constexpr std::size_t kWays = 4;
  float accumulators[kWays][kPanel] = {};
  std::size_t k = 0;
  for (; k + kWays <= depth; k += kWays) {
#pragma GCC unroll 4
    for (std::size_t way = 0; way < kWays; ++way) {
      const float factor = left[(k + way) * stride];
#pragma GCC unroll 1
      for (std::size_t j = 0; j < kPanel; ++j) {
        accumulators[way][j] += factor * panel[(k + way) * kPanel + j];
      }
    }
  }
  for (; k < depth; ++k) {
    for (std::size_t j = 0; j < kPanel; ++j) {
      accumulators[0][j] += left[k * stride] * panel[k * kPanel + j];
    }
  }
  for (std::size_t j = 0; j < kPanel; ++j) {
    sums[j] = (accumulators[0][j] + accumulators[1][j]) + (accumulators[2][j] + accumulators[3][j]);
  }
}

// The same for each kind of processor; `sums` has kMostPanels panels to a row.
struct Kernel {
  std::size_t num_rows;
  std::size_t num_panels;  // of a tile
  // Of num_rows rows, and of one panel or of num_panels.
  void (*tile)(const float* const* left, std::size_t stride, const float* panel, std::size_t depth,
               float* sums);
  void (*wide_tile)(const float* const* left, std::size_t stride, const float* panel,
                    std::size_t depth, float* sums);
  void (*row)(const float* left, std::size_t stride, const float* panel, std::size_t depth,
              float* sums);
  // Of kTallRows rows, a multiple of num_rows, and one panel, into the product; null: none.
  void (*tall_tile)(const float* left, std::size_t row_stride, std::size_t stride,
                    const float* panel, std::size_t depth, float* c, std::size_t columns);
};

void tile_for_any(const float* const* left, std::size_t stride, const float* panel,
                  std::size_t depth, float* sums) {
  multiply_tile<4, kPanel / 2>(left, stride, panel, depth, sums);
  multiply_tile<4, kPanel / 2>(left, stride, panel + kPanel / 2, depth, sums + kPanel / 2);
}

void row_for_any(const float* left, std::size_t stride, const float* panel, std::size_t depth,
                 float* sums) {
  multiply_row(left, stride, panel, depth, sums);
}

ARENITE_FOR_AVX2 void tile_for_avx2(const float* const* left, std::size_t stride,
                                    const float* panel, std::size_t depth, float* sums) {
  multiply_tile<6, kPanel>(left, stride, panel, depth, sums);
}

ARENITE_FOR_AVX2 void row_for_avx2(const float* left, std::size_t stride, const float* panel,
                                   std::size_t depth, float* sums) {
  multiply_row(left, stride, panel, depth, sums);
}

ARENITE_FOR_AVX512 void tile_for_avx512(const float* const* left, std::size_t stride,
                                        const float* panel, std::size_t depth, float* sums) {
  multiply_tile<8, kPanel>(left, stride, panel, depth, sums);
}

// A panel alone takes more rows, so that no sum waits for its last addition. They are as far apart
// as each other, and an address has room for twice that: few registers hold where they are.
ARENITE_FOR_AVX512 void tall_tile_for_avx512(const float* left, std::size_t row_stride,
                                             std::size_t stride, const float* panel,
                                             std::size_t depth, float* c, std::size_t columns) {
  const float* first = left;
  const float* second = left + 4 * row_stride;
  const float* third = left + 8 * row_stride;
  const float* fourth = left + 12 * row_stride;
  float accumulators[kTallRows][kPanel] = {};
  for (std::size_t k = 0; k < depth; ++k) {
    // Compilers would keep the address of each row.
    __asm__("" : "+r"(first), "+r"(second), "+r"(third), "+r"(fourth));
    const float* const bases[] = {first, second, third, fourth};
#pragma GCC unroll 16
    for (std::size_t r = 0; r < kTallRows; ++r) {
      const float factor = bases[r / 4][r % 4 * row_stride];
#pragma GCC unroll 1
      for (std::size_t j = 0; j < kPanel; ++j) {
        accumulators[r][j] += factor * panel[k * kPanel + j];
      }
    }
    first += stride;
    second += stride;
    third += stride;
    fourth += stride;
  }
  for (std::size_t r = 0; r < kTallRows; ++r) {
    std::copy_n(accumulators[r], kPanel, c + r * columns);
  }
}

ARENITE_FOR_AVX512 void wide_tile_for_avx512(const float* const* left, std::size_t stride,
                                             const float* panel, std::size_t depth, float* sums) {
  multiply_tile<8, kPanel, 2>(left, stride, panel, depth, sums);
}

ARENITE_FOR_AVX512 void row_for_avx512(const float* left, std::size_t stride, const float* panel,
                                       std::size_t depth, float* sums) {
  multiply_row(left, stride, panel, depth, sums);
}

Kernel find_kernel() {
  switch (vectors()) {
    case Vectors::avx512:
      return {8, 2, tile_for_avx512, wide_tile_for_avx512, row_for_avx512, tall_tile_for_avx512};
    case Vectors::avx2: return {6, 1, tile_for_avx2, nullptr, row_for_avx2, nullptr};
    default: return {4, 1, tile_for_any, nullptr, row_for_any, nullptr};
  }
}

void multiply_panels(const Kernel& kernel, const GemmLeft& a, const float* panel, std::size_t depth,
                     std::size_t first, std::size_t count, float* c, std::size_t columns,
                     std::size_t width) {
  float sums[kTileRows * kMostPanels * kPanel];
  for (std::size_t done = 0; done < count;) {
    const std::size_t rest = count - done;
    if (width == kPanel && kernel.tall_tile != nullptr && rest >= kTallRows) {
      const std::size_t row = first + done;
      kernel.tall_tile(a.data + row * a.row_stride, a.row_stride, a.depth_stride, panel, depth,
                       c + row * columns, columns);
      done += kTallRows;
      continue;
    }
    const float* left[kTileRows];
    // Rows beyond the last are the last again, and not kept.
    for (std::size_t r = 0; r < kernel.num_rows; ++r) {
      left[r] = a.data + (first + done + std::min(r, rest - 1)) * a.row_stride;
    }
    const std::size_t made = rest == 1 ? 1 : std::min(rest, kernel.num_rows);
    if (made == 1) {
      for (std::size_t p = 0; p * kPanel < width; ++p) {
        kernel.row(left[0], a.depth_stride, panel + p * depth * kPanel, depth, sums + p * kPanel);
      }
    } else {
      (width > kPanel ? kernel.wide_tile : kernel.tile)(left, a.depth_stride, panel, depth, sums);
    }
    for (std::size_t r = 0; r < made; ++r) {
      const float* from = sums + r * kMostPanels * kPanel;
      std::copy(from, from + width, c + (first + done + r) * columns);
    }
    done += made;
  }
}

// Rows are the pixels of tiles; `count` of them.
void multiply_rows(const GemmLeft& a, const float* packed, std::size_t columns, std::size_t depth,
                   std::size_t first, std::size_t count, float* c, std::size_t row_stride) {
  constexpr std::size_t kDepth = 512;
  alignas(64) float pixels[packed_pixels_size(kDepth)];
  float copies[kPackedPixels * kDepth];
  const std::size_t tiles = divide_up(count, kPackedPixels);
  for (std::size_t i = 0; i < tiles; ++i) {
    const std::size_t row = first + count * i / tiles;
    const std::size_t num_rows = first + count * (i + 1) / tiles - row;
    for (std::size_t k = 0; k == 0 || k < depth; k += kDepth) {
      const std::size_t part = std::min(kDepth, depth - k);
      const bool is_transposed = a.row_stride == 1;
      const float* left[kPackedPixels] = {};
      float* results[kPackedPixels] = {};
      for (std::size_t r = 0; r < num_rows; ++r) {
        left[r] = a.data + (row + r) * a.row_stride + k * a.depth_stride;
        if (a.depth_stride != 1 && !is_transposed) {
          float* const copy = copies + r * kDepth;
          for (std::size_t j = 0; j < part; ++j) { copy[j] = left[r][j * a.depth_stride]; }
          left[r] = copy;
        }
        results[r] = c + (row + r) * row_stride;
      }
      if (is_transposed) {
        pack_columns(left[0], a.depth_stride, num_rows, part, pixels);
      } else {
        pack_pixels(left, num_rows, part, pixels);
      }
      PackedTile tile{};
      tile.pixels = pixels;
      tile.num_pixels = num_rows;
      tile.depth = part;
      tile.filter = packed + k * kPanel;
      tile.panel_stride = depth * kPanel;
      tile.channels = columns;
      tile.result = results;
      tile.is_first = k == 0;
      multiply_packed(tile);
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
  if constexpr (kPacksPixels) {
    // As many columns at once as stay in the cache for all rows.
    constexpr std::size_t kCached = std::size_t{1} << 17;
    const std::size_t block =
        std::max<std::size_t>(1, kCached / std::max<std::size_t>(depth, 1) / kPanel) * kPanel;
    for (std::size_t start = 0; start < columns; start += block) {
      multiply_rows(a, packed + start * depth, std::min(block, columns - start), depth, first,
                    count, c + start, columns);
    }
    return;
  }
  static const Kernel kernel = find_kernel();
  // As many rows at once as stay in the cache for all panels.
  constexpr std::size_t kCached = std::size_t{1} << 15;
  const std::size_t block =
      std::max<std::size_t>(1, kCached / std::max<std::size_t>(depth, 1) / kGemmRows) * kGemmRows;
  for (std::size_t done = 0; done < count; done += block) {
    const std::size_t rows = std::min(block, count - done);
    const std::size_t width = kernel.num_panels * kPanel;
    for (std::size_t start = 0; start < columns; start += width) {
      multiply_panels(kernel, a, packed + start * depth, depth, first + done, rows, c + start,
                      columns, std::min(width, columns - start));
    }
  }
}

}  // namespace arenite
