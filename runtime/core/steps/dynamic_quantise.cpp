// Quantisation to 8 bits whose scale and zero point are those of the elements of each run.
#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/parallel.hpp"
#include "kernels/processor.hpp"
#include "kernels/requantise.hpp"
#include "operand_checks.hpp"
#include "registry.hpp"

namespace arenite {

namespace {

constexpr std::size_t kMostParts = 64;  // that have a range of their own

struct Range {
  float low;
  float high;
};

struct Quantising {
  const float* from;
  std::size_t count;
  std::uint8_t* to;
  float scale;
  std::int32_t zero_point;
};

// The range of some elements and 0.
ARENITE_INLINE Range range_of(const float* from, std::size_t count) {
  constexpr std::size_t kLanes = 64;  // several vectors, so that none waits for the one before
  float low[kLanes] = {};
  float high[kLanes] = {};
  std::size_t done = 0;
  for (; done + kLanes <= count; done += kLanes) {
#pragma GCC unroll 1
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const float x = from[done + lane];
      low[lane] = x < low[lane] ? x : low[lane];
      high[lane] = x > high[lane] ? x : high[lane];
    }
  }
  for (std::size_t lane = 0; done < count; ++done, ++lane) {
    low[lane] = std::min(low[lane], from[done]);
    high[lane] = std::max(high[lane], from[done]);
  }
  return {*std::min_element(low, low + kLanes), *std::max_element(high, high + kLanes)};
}

ARENITE_INLINE void quantise(const Quantising& given) {
  const Rounding<std::uint8_t> rounding(0, 255, given.zero_point);
  const float* __restrict from = given.from;
  std::uint8_t* __restrict to = given.to;
  const float scale = given.scale;
  const std::size_t count = given.count;
  for (std::size_t i = 0; i < count; ++i) { to[i] = rounding(from[i] / scale); }
}

Range range_for_any(const float* from, std::size_t count) { return range_of(from, count); }
void quantise_for_any(const Quantising& given) { quantise(given); }

ARENITE_FOR_AVX2 Range range_for_avx2(const float* from, std::size_t count) {
  return range_of(from, count);
}
ARENITE_FOR_AVX2 void quantise_for_avx2(const Quantising& given) { quantise(given); }

ARENITE_FOR_AVX512 Range range_for_avx512(const float* from, std::size_t count) {
  return range_of(from, count);
}
ARENITE_FOR_AVX512 void quantise_for_avx512(const Quantising& given) { quantise(given); }

struct Kernel {
  Range (*range)(const float* from, std::size_t count);
  void (*quantise)(const Quantising& given);
};

Kernel find_kernel() {
  switch (vectors()) {
    case Vectors::avx512: return {range_for_avx512, quantise_for_avx512};
    case Vectors::avx2: return {range_for_avx2, quantise_for_avx2};
    default: return {range_for_any, quantise_for_any};
  }
}

class DynamicQuantiseStep final : public Step {
 public:
  explicit DynamicQuantiseStep(const Operands& operands)
      : source_(operands.inputs[0]->as<float>()),
        count_(operands.inputs[0]->num_elements()),
        target_(operands.outputs[0]->as<std::uint8_t>()),
        scale_(operands.outputs[1]->as<float>()),
        zero_point_(operands.outputs[2]->as<std::uint8_t>()),
        kernel_(find_kernel()),
        threads_(operands.threads) {}

  // As ONNX defines it, to the bit.
  void run() override {
    const Range range = found_range();
    const float scale = range.high == range.low ? 1.0f : (range.high - range.low) / 255.0f;
    const float zero = std::min(std::max(-range.low / scale, 0.0f), 255.0f);
    const auto zero_point = static_cast<std::int32_t>(std::nearbyint(zero));
    parallel(threads_, count_, 2 * sizeof(float), [=](std::size_t first, std::size_t count) {
      kernel_.quantise({source_ + first, count, target_ + first, scale, zero_point});
    });
    *scale_ = scale;
    *zero_point_ = static_cast<std::uint8_t>(zero_point);
  }

 private:
  Range found_range() const {
    std::array<Range, kMostParts> ranges{};
    const std::size_t part = divide_up(std::max<std::size_t>(count_, 1), kMostParts);
    parallel(threads_, divide_up(count_, part), part * sizeof(float),
             [&, part](std::size_t first, std::size_t count) {
               for (std::size_t i = first; i < first + count; ++i) {
                 const std::size_t start = i * part;
                 ranges[i] = kernel_.range(source_ + start, std::min(part, count_ - start));
               }
             });
    Range whole = ranges[0];
    for (const Range& each : ranges) {
      whole = {std::min(whole.low, each.low), std::max(whole.high, each.high)};
    }
    return whole;
  }

  const float* source_;
  std::size_t count_;
  std::uint8_t* target_;
  float* scale_;
  std::uint8_t* zero_point_;
  Kernel kernel_;
  pthreadpool_t threads_;
};

std::unique_ptr<Step> make_dynamic_quantise(const Operands& operands) {
  using program::Type;
  require_arity(operands, 1, 1, 3);
  require(operands, operands.outputs.size() == 3,
          "it makes integers, their scale and their zero point");
  const auto& source = *operands.inputs[0];
  const auto& result = *operands.outputs[0];
  const auto& scale = *operands.outputs[1];
  const auto& zero_point = *operands.outputs[2];
  require(operands,
          source.type == Type::float32 && result.type == Type::uint8 &&
              scale.type == Type::float32 && zero_point.type == Type::uint8,
          "it quantises float32 as uint8");
  require(operands,
          source.num_elements() == result.num_elements() && scale.num_elements() == 1 &&
              zero_point.num_elements() == 1,
          "its outputs do not fit");
  return std::make_unique<DynamicQuantiseStep>(operands);
}

const Registration registered{program::Operator::DynamicQuantise, make_dynamic_quantise};

}  // namespace

}  // namespace arenite
