#include "kernels/half.hpp"

#include <algorithm>

#include "kernels/processor.hpp"
#include "kernels/x86_intrinsics.hpp"

#if defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace arenite {

namespace {

// Numbers that are converted together. The last of a row are filled up to as many, so that each is
// converted by the same instructions wherever it lies: they make different NaNs.
constexpr std::size_t kTogether = 16;

// Converts whole groups.
using Widen = void (*)(const Half* source, float* target, std::size_t groups);
using WidenRows = void (*)(const Half* source, std::size_t stride, std::size_t rows,
                           std::size_t groups, float* target);
using Narrow = void (*)(const float* source, Half* target, std::size_t groups);

#if defined(__aarch64__)

void widen_groups(const Half* source, float* target, std::size_t groups) {
  const auto* from = reinterpret_cast<const __fp16*>(source);
  for (std::size_t i = 0; i < groups * kTogether; i += 8) {
    const float16x8_t halves = vld1q_f16(from + i);
    vst1q_f32(target + i, vcvt_f32_f16(vget_low_f16(halves)));
    vst1q_f32(target + i + 4, vcvt_high_f32_f16(halves));
  }
}

void narrow_groups(const float* source, Half* target, std::size_t groups) {
  auto* to = reinterpret_cast<__fp16*>(target);
  for (std::size_t i = 0; i < groups * kTogether; i += 8) {
    const float16x4_t low = vcvt_f16_f32(vld1q_f32(source + i));
    vst1q_f16(to + i, vcvt_high_f16_f32(low, vld1q_f32(source + i + 4)));
  }
}

void widen_rows_of_groups(const Half* source, std::size_t stride, std::size_t rows,
                          std::size_t groups, float* target) {
  for (std::size_t row = 0; row < rows; ++row) {
    widen_groups(source + row * stride, target + row * groups * kTogether, groups);
  }
}

Widen widen_kernel() { return widen_groups; }
WidenRows widen_rows_kernel() { return widen_rows_of_groups; }
Narrow narrow_kernel() { return narrow_groups; }

#else

void widen_for_any(const Half* source, float* target, std::size_t groups) {
  for (std::size_t i = 0; i < groups * kTogether; ++i) { target[i] = widened(source[i]); }
}

void widen_rows_for_any(const Half* source, std::size_t stride, std::size_t rows,
                        std::size_t groups, float* target) {
  for (std::size_t row = 0; row < rows; ++row) {
    widen_for_any(source + row * stride, target + row * groups * kTogether, groups);
  }
}

void narrow_for_any(const float* source, Half* target, std::size_t groups) {
  for (std::size_t i = 0; i < groups * kTogether; ++i) { target[i] = narrowed(source[i]); }
}

#if defined(ARENITE_X86)

__attribute__((target("avx,f16c"))) void widen_by_f16c(const Half* source, float* target,
                                                       std::size_t groups) {
  for (std::size_t i = 0; i < groups * kTogether; i += 8) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + i));
    _mm256_storeu_ps(target + i, _mm256_cvtph_ps(halves));
  }
}

__attribute__((target("avx,f16c"))) void widen_rows_by_f16c(const Half* source, std::size_t stride,
                                                            std::size_t rows, std::size_t groups,
                                                            float* target) {
  for (std::size_t row = 0; row < rows; ++row) {
    widen_by_f16c(source + row * stride, target + row * groups * kTogether, groups);
  }
}

__attribute__((target("avx,f16c"))) void narrow_by_f16c(const float* source, Half* target,
                                                        std::size_t groups) {
  for (std::size_t i = 0; i < groups * kTogether; i += 8) {
    const __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(source + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(target + i), halves);
  }
}

Widen widen_kernel() { return vectors() != Vectors::any ? widen_by_f16c : widen_for_any; }
WidenRows widen_rows_kernel() {
  return vectors() != Vectors::any ? widen_rows_by_f16c : widen_rows_for_any;
}
Narrow narrow_kernel() { return vectors() != Vectors::any ? narrow_by_f16c : narrow_for_any; }

#else

Widen widen_kernel() { return widen_for_any; }
WidenRows widen_rows_kernel() { return widen_rows_for_any; }
Narrow narrow_kernel() { return narrow_for_any; }

#endif
#endif

template <typename Source, typename Target>
void convert(const Source* source, Target* target, std::size_t count,
             void (*kernel)(const Source*, Target*, std::size_t)) {
  const std::size_t whole = count - count % kTogether;
  kernel(source, target, whole / kTogether);
  if (whole == count) { return; }
  Source in[kTogether] = {};
  Target out[kTogether];
  std::copy(source + whole, source + count, in);
  kernel(in, out, 1);
  std::copy_n(out, count - whole, target + whole);
}

}  // namespace

void widen(const Half* source, float* target, std::size_t count) {
  convert(source, target, count, widen_kernel());
}

void widen(const BFloat* source, float* target, std::size_t count) {
  with_widest_vectors([=] {
    for (std::size_t i = 0; i < count; ++i) { target[i] = widened(source[i]); }
  });
}

void widen_rows(const Half* source, std::size_t stride, std::size_t rows, std::size_t width,
                float* target) {
  if (width % kTogether == 0) {
    widen_rows_kernel()(source, stride, rows, width / kTogether, target);
    return;
  }
  for (std::size_t row = 0; row < rows; ++row) {
    widen(source + row * stride, target + row * width, width);
  }
}

void narrow(const float* source, Half* target, std::size_t count) {
  convert(source, target, count, narrow_kernel());
}

}  // namespace arenite
