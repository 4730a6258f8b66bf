// Products of one row, with a matrix as it lies.
#include <algorithm>
#include <cmath>

#include "kernels/gemm.hpp"
#include "kernels/processor.hpp"

#ifdef ARENITE_ARM64
#include <arm_neon.h>
#endif

namespace arenite {

namespace {

constexpr std::size_t kPanel = kGemmPanel;

#ifdef ARENITE_ARM64
// Columns that fill no block.
void add_up_few(const float* a, const float* b, std::size_t stride, std::size_t depth,
                std::size_t count, float* c) {
  float sums[kPanel] = {};
  for (std::size_t k = 0; k < depth; ++k) {
    for (std::size_t j = 0; j < count; ++j) {
      sums[j] = std::fma(a[k], b[k * stride + j], sums[j]);
    }
  }
  std::copy_n(sums, count, c);
}

// One product after another is added to the sum of a column, however many are made together.
template <std::size_t Width>
ARENITE_INLINE void add_up_columns(const float* a, const float* b, std::size_t stride,
                                   std::size_t depth, std::size_t count, float* c) {
  if (count < Width) { return add_up_few(a, b, stride, depth, count, c); }
  float32x4_t sums[Width / 4];
#pragma GCC unroll 16
  for (float32x4_t& sum : sums) { sum = vdupq_n_f32(0.0f); }
  for (std::size_t k = 0; k < depth; ++k) {
    const float32x4_t factor = vld1q_dup_f32(a + k);
#pragma GCC unroll 4
    for (std::size_t i = 0; i < Width / 4; i += 4) {
      const float32x4x4_t from = vld1q_f32_x4(b + 4 * i);
#pragma GCC unroll 4
      for (std::size_t j = 0; j < 4; ++j) {
        sums[i + j] = vfmaq_f32(sums[i + j], factor, from.val[j]);
      }
    }
    b += stride;
  }
#pragma GCC unroll 16
  for (std::size_t i = 0; i < Width / 4; ++i) { vst1q_f32(c + 4 * i, sums[i]); }
}

// Sums of every eighth product, then of these.
template <std::size_t Count>
ARENITE_INLINE void multiply_columns(const float* a, const float* b, std::size_t stride,
                                     std::size_t depth, float* c) {
  constexpr std::size_t kLanes = 4;
  float32x4_t sums[Count][2];
#pragma GCC unroll 4
  for (auto& pair : sums) { pair[0] = pair[1] = vdupq_n_f32(0.0f); }
  std::size_t k = 0;
  for (; k + 2 * kLanes <= depth; k += 2 * kLanes) {
    const float32x4_t first = vld1q_f32(a + k);
    const float32x4_t second = vld1q_f32(a + k + kLanes);
#pragma GCC unroll 4
    for (std::size_t j = 0; j < Count; ++j) {
      const float* const from = b + j * stride + k;
      sums[j][0] = vfmaq_f32(sums[j][0], first, vld1q_f32(from));
      sums[j][1] = vfmaq_f32(sums[j][1], second, vld1q_f32(from + kLanes));
    }
  }
#pragma GCC unroll 4
  for (std::size_t j = 0; j < Count; ++j) {
    float sum = vaddvq_f32(vaddq_f32(sums[j][0], sums[j][1]));
    for (std::size_t i = k; i < depth; ++i) { sum = std::fma(a[i], b[j * stride + i], sum); }
    c[j] = sum;
  }
}
#else
// One product after another is added to the sum of a column, however many are made together.
template <std::size_t Width>
ARENITE_INLINE void add_up_columns(const float* a, const float* b, std::size_t stride,
                                   std::size_t depth, std::size_t count, float* c) {
  float sums[Width] = {};
  for (std::size_t k = 0; k < depth; ++k) {
    const float factor = a[k];
    const float* from = b + k * stride;
    if (count == Width) {
#pragma GCC unroll 1
      for (std::size_t j = 0; j < Width; ++j) { sums[j] += factor * from[j]; }
    } else {
      for (std::size_t j = 0; j < count; ++j) { sums[j] += factor * from[j]; }
    }
  }
  std::copy_n(sums, count, c);
}

// Sums of every sixteenth product, then of these.
template <std::size_t Count>
ARENITE_INLINE void multiply_columns(const float* a, const float* b, std::size_t stride,
                                     std::size_t depth, float* c) {
  float sums[Count][kPanel] = {};
  std::size_t k = 0;
  for (; k + kPanel <= depth; k += kPanel) {
#pragma GCC unroll 4
    for (std::size_t j = 0; j < Count; ++j) {
#pragma GCC unroll 1
      for (std::size_t i = 0; i < kPanel; ++i) { sums[j][i] += a[k + i] * b[j * stride + k + i]; }
    }
  }
#pragma GCC unroll 4
  for (std::size_t j = 0; j < Count; ++j) {
    for (std::size_t i = 0; k + i < depth; ++i) { sums[j][i] += a[k + i] * b[j * stride + k + i]; }
#pragma GCC unroll 1
    for (std::size_t i = 0; i < 8; ++i) { sums[j][i] += sums[j][i + 8]; }
#pragma GCC unroll 1
    for (std::size_t i = 0; i < 4; ++i) { sums[j][i] += sums[j][i + 4]; }
    c[j] = (sums[j][0] + sums[j][2]) + (sums[j][1] + sums[j][3]);
  }
}
#endif

}  // namespace

void gemm_row(const float* a, const float* b, bool is_transposed, std::size_t stride,
              std::size_t depth, std::size_t first, std::size_t count, float* c) {
  const std::size_t end = first + count;
  if (is_transposed) {
    with_widest_vectors([=] {
      std::size_t j = first;
      for (; j + 4 <= end; j += 4) { multiply_columns<4>(a, b + j * stride, stride, depth, c + j); }
      for (; j < end; ++j) { multiply_columns<1>(a, b + j * stride, stride, depth, c + j); }
    });
    return;
  }
  with_widest_vectors([=] {
    constexpr std::size_t kWidth = 4 * kPanel;
    std::size_t j = first;
    for (; j + kWidth <= end; j += kWidth) {
      add_up_columns<kWidth>(a, b + j, stride, depth, kWidth, c + j);
    }
    for (; j < end; j += kPanel) {
      // The last ones again rather than fewer.
      if (end - j < kPanel && count >= kPanel) { j = end - kPanel; }
      add_up_columns<kPanel>(a, b + j, stride, depth, std::min(kPanel, end - j), c + j);
    }
  });
}

}  // namespace arenite
