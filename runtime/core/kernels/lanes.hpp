// Vectors of floats for kernels that Highway compiles once for each kind of processor.
//
// A file that uses this first includes kernels/highway_targets.hpp, defines HWY_TARGET_INCLUDE as
// its own name and includes hwy/foreach_target.h, which includes the file once more for each
// target. ARENITE_COPY(f) is the copy of f for this processor; Highway itself is not linked.
#if defined(ARENITE_LANES) == defined(HWY_TARGET_TOGGLE)  // once for each kind
#ifdef ARENITE_LANES
#undef ARENITE_LANES
#else
#define ARENITE_LANES
#endif

#include <cstddef>

#include "hwy/highway.h"
#include "kernels/processor.hpp"

#undef ARENITE_COPY
#if HWY_TARGETS & HWY_AVX2
#define ARENITE_COPY(function)                     \
  (vectors() == Vectors::avx512 ? N_AVX3::function \
   : vectors() == Vectors::avx2 ? N_AVX2::function \
                                : HWY_NAMESPACE::function)
#else
#define ARENITE_COPY(function) HWY_NAMESPACE::function
#endif

HWY_BEFORE_NAMESPACE();
namespace arenite {
namespace HWY_NAMESPACE {

// Force-inline: otherwise the linker may keep an AVX copy for all processors (ODR).
#undef ARENITE_LANE
#define ARENITE_LANE HWY_INLINE HWY_MAYBE_UNUSED

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
// Highway 1.0 has no vectors for SSE2; the compiler has.
constexpr std::size_t kLanes = 4;
typedef float Lanes __attribute__((vector_size(16)));

ARENITE_LANE Lanes load(const float* from) {
  Lanes value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}
ARENITE_LANE void store(Lanes value, float* to) { __builtin_memcpy(to, &value, sizeof value); }
ARENITE_LANE Lanes all_lanes(float value) { return Lanes{value, value, value, value}; }
ARENITE_LANE Lanes add(Lanes a, Lanes b) { return a + b; }
ARENITE_LANE Lanes subtract(Lanes a, Lanes b) { return a - b; }
ARENITE_LANE Lanes multiply(Lanes a, Lanes b) { return a * b; }
ARENITE_LANE Lanes multiply_add(Lanes a, Lanes b, Lanes sum) { return a * b + sum; }
ARENITE_LANE Lanes subtract_product(Lanes a, Lanes b, Lanes sum) { return sum - a * b; }
ARENITE_LANE Lanes larger(Lanes a, Lanes b) { return a > b ? a : b; }
ARENITE_LANE Lanes clamp(Lanes value, Lanes min, Lanes max) {
  value = min > value ? min : value;
  return max < value ? max : value;
}
#else
using LaneTag = hwy::HWY_NAMESPACE::ScalableTag<float>;
using Lanes = hwy::HWY_NAMESPACE::Vec<LaneTag>;
constexpr std::size_t kLanes = sizeof(Lanes) / sizeof(float);

ARENITE_LANE Lanes load(const float* from) { return hwy::HWY_NAMESPACE::LoadU(LaneTag(), from); }
ARENITE_LANE void store(Lanes value, float* to) {
  hwy::HWY_NAMESPACE::StoreU(value, LaneTag(), to);
}
ARENITE_LANE Lanes all_lanes(float value) { return hwy::HWY_NAMESPACE::Set(LaneTag(), value); }
ARENITE_LANE Lanes add(Lanes a, Lanes b) { return hwy::HWY_NAMESPACE::Add(a, b); }
ARENITE_LANE Lanes subtract(Lanes a, Lanes b) { return hwy::HWY_NAMESPACE::Sub(a, b); }
ARENITE_LANE Lanes multiply(Lanes a, Lanes b) { return hwy::HWY_NAMESPACE::Mul(a, b); }
#if HWY_ARCH_ARM_V7  // fewer processors have fused ones, and Highway would take two instructions
ARENITE_LANE Lanes multiply_add(Lanes a, Lanes b, Lanes sum) {
  return Lanes(vmlaq_f32(sum.raw, a.raw, b.raw));
}
ARENITE_LANE Lanes subtract_product(Lanes a, Lanes b, Lanes sum) {
  return Lanes(vmlsq_f32(sum.raw, a.raw, b.raw));
}
#else
ARENITE_LANE Lanes multiply_add(Lanes a, Lanes b, Lanes sum) {
  return hwy::HWY_NAMESPACE::MulAdd(a, b, sum);
}
ARENITE_LANE Lanes subtract_product(Lanes a, Lanes b, Lanes sum) {
  return hwy::HWY_NAMESPACE::NegMulAdd(a, b, sum);
}
#endif
ARENITE_LANE Lanes larger(Lanes a, Lanes b) { return hwy::HWY_NAMESPACE::Max(a, b); }
// NaN stays: if an operand is NaN, x86 returns the second one, and these of ARM NaN.
ARENITE_LANE Lanes clamp(Lanes value, Lanes min, Lanes max) {
#if HWY_ARCH_ARM
  return Lanes(vminq_f32(vmaxq_f32(value.raw, min.raw), max.raw));
#endif
  return hwy::HWY_NAMESPACE::Min(max, hwy::HWY_NAMESPACE::Max(min, value));
}
#endif

// Vectors side by side. Of two the compiler would make one load with other addresses each.
template <std::size_t Count>
ARENITE_LANE void load_all(const float* from, Lanes (&values)[Count]) {
#if HWY_ARCH_ARM_A64
  if constexpr (Count == 2) {
    float32x4_t first;
    float32x4_t second;
    __asm__("ldp %q0, %q1, %2"
            : "=w"(first), "=w"(second)
            : "Ump"(*reinterpret_cast<const float32x4_t*>(from)),
              "m"(*reinterpret_cast<const float (*)[2 * kLanes]>(from)));
    values[0] = Lanes(first);
    values[1] = Lanes(second);
    return;
  }
#endif
#pragma GCC unroll 4
  for (std::size_t i = 0; i < Count; ++i) { values[i] = load(from + i * kLanes); }
}

// The same, and moves on by so many floats.
template <std::size_t Count>
ARENITE_LANE void load_all_and_step(const float*& from, std::size_t step, Lanes (&values)[Count]) {
#if HWY_ARCH_ARM_A64
  if constexpr (Count == 2) {
    float32x4x2_t pair;
    __asm__ volatile("ld1 {%S0.4s-%T0.4s}, [%1], %2"
                     : "=w"(pair), "+r"(from)
                     : "r"(step * sizeof(float)));
    values[0] = Lanes(pair.val[0]);
    values[1] = Lanes(pair.val[1]);
    return;
  }
#endif
  load_all(from, values);
  from += step;
}

template <std::size_t Count>
ARENITE_LANE void store_all(const Lanes (&values)[Count], float* to) {
#if HWY_ARCH_ARM_A64
  if constexpr (Count == 2) {
    __asm__("stp %q2, %q3, %0"
            : "=Ump"(*reinterpret_cast<float32x4_t*>(to)),
              "=m"(*reinterpret_cast<float (*)[2 * kLanes]>(to))
            : "w"(values[0].raw), "w"(values[1].raw));
    return;
  }
#endif
#pragma GCC unroll 4
  for (std::size_t i = 0; i < Count; ++i) { store(values[i], to + i * kLanes); }
}

// Read and write only the first `count` floats, at most kLanes.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
ARENITE_LANE Lanes load_some(const float* from, std::size_t count) {
  const auto some = hwy::HWY_NAMESPACE::FirstN(LaneTag(), count);
  return hwy::HWY_NAMESPACE::MaskedLoad(some, LaneTag(), from);
}
ARENITE_LANE void store_some(Lanes value, float* to, std::size_t count) {
  const auto some = hwy::HWY_NAMESPACE::FirstN(LaneTag(), count);
  hwy::HWY_NAMESPACE::BlendedStore(value, some, LaneTag(), to);
}
#else
ARENITE_LANE Lanes load_some(const float* from, std::size_t count) {
  float floats[kLanes] = {};
  for (std::size_t i = 0; i < count; ++i) { floats[i] = from[i]; }
  return load(floats);
}
ARENITE_LANE void store_some(Lanes value, float* to, std::size_t count) {
  float floats[kLanes];
  store(value, floats);
  for (std::size_t i = 0; i < count; ++i) { to[i] = floats[i]; }
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace arenite
HWY_AFTER_NAMESPACE();

#endif  // once for each kind
