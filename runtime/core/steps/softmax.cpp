// Softmax over the last axis, or its logarithm.
#include <algorithm>
#include <cmath>

#include "kernels/approximations.hpp"
#include "kernels/quantised_softmax.hpp"
#include "registry.hpp"
#include "steps/rows.hpp"

namespace arenite {

namespace {

constexpr std::size_t kBlock = 16;  // elements that are computed together
// Parts of a block that take turns: small processors do nothing else while one waits for its last
// result.
#ifdef ARENITE_ARM64
constexpr std::size_t kWays = 2;
#else
constexpr std::size_t kWays = 1;
#endif

// Halves are combined pairwise: adding one after another would take longer than a short row.
template <typename Combine>
float combined(float (&lanes)[kBlock], const Combine& combine) {
#pragma GCC unroll 4
  for (std::size_t half = kBlock / 2; half > 0; half /= 2) {
    for (std::size_t lane = 0; lane < half; ++lane) {
      lanes[lane] = combine(lanes[lane], lanes[lane + half]);
    }
  }
  return lanes[0];
}

void softmax_of_few(const float* source, float* target, std::size_t count, float beta) {
  const float top = largest(source, count);
  float sum = 0.0f;
  for (std::size_t i = 0; i < count; ++i) {
    target[i] = exponential_below(beta * (source[i] - top));
    sum += target[i];
  }
  const float factor = 1.0f / sum;
  for (std::size_t i = 0; i < count; ++i) { target[i] *= factor; }
}

// Rows of two: so many side by side.
constexpr std::size_t kPairs = 8;

inline void softmax_of_some_pairs(const float* source, float* target, float beta) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < kPairs; ++i) {
    const float one = source[2 * i];
    const float two = source[2 * i + 1];
    const float top = one > two ? one : two;
    const float first = exponential_below(beta * (one - top));
    const float second = exponential_below(beta * (two - top));
    const float factor = 1.0f / (first + second);
    target[2 * i] = first * factor;
    target[2 * i + 1] = second * factor;
  }
}

// The last rows are padded: a result does not depend on its position.
void softmax_of_pairs(const float* source, float* target, std::size_t num_rows, float beta) {
  for (; num_rows >= kPairs; num_rows -= kPairs) {
    softmax_of_some_pairs(source, target, beta);
    source += 2 * kPairs;
    target += 2 * kPairs;
  }
  if (num_rows == 0) { return; }
  float rows[2 * kPairs] = {};
  std::copy_n(source, 2 * num_rows, rows);
  softmax_of_some_pairs(rows, rows, beta);
  std::copy_n(rows, 2 * num_rows, target);
}

// Powers are added up as they are made. The last block is that of the last elements, some of which
// an earlier one had too: these are made again, and not added. It is read before anything is
// written.
void softmax_of_blocks(const float* source, float* target, std::size_t count, float beta) {
  const std::size_t whole = (count - 1) / kBlock * kBlock;  // of blocks before the last
  float last[kBlock];
  float lanes[kBlock];
  for (std::size_t lane = 0; lane < kBlock; ++lane) {
    last[lane] = source[count - kBlock + lane];
    lanes[lane] = last[lane];
  }
  for (std::size_t done = 0; done < whole; done += kBlock) {
#pragma GCC unroll 1
    for (std::size_t lane = 0; lane < kBlock; ++lane) {
      const float x = source[done + lane];
      lanes[lane] = x > lanes[lane] ? x : lanes[lane];
    }
  }
  const float top = combined(lanes, [](float a, float b) { return a > b ? a : b; });
  for (float& lane : lanes) { lane = 0.0f; }
  for (std::size_t done = 0; done < whole; done += kBlock) {
    const float* const from = source + done;
    float* const to = target + done;
#pragma GCC ivdep
    for (std::size_t lane = 0; lane < kBlock / kWays; ++lane) {
      float powers[kWays];
#pragma GCC unroll 2
      for (std::size_t way = 0; way < kWays; ++way) {
        powers[way] = exponential_below(beta * (from[way * kBlock / kWays + lane] - top));
      }
#pragma GCC unroll 2
      for (std::size_t way = 0; way < kWays; ++way) {
        to[way * kBlock / kWays + lane] = powers[way];
        lanes[way * kBlock / kWays + lane] += powers[way];
      }
    }
  }
  float powers[kBlock];
  const std::size_t again = kBlock - (count - whole);
#pragma GCC unroll 1
  for (std::size_t lane = 0; lane < kBlock; ++lane) {
    powers[lane] = exponential_below(beta * (last[lane] - top));
  }
#pragma GCC unroll 1
  for (std::size_t lane = 0; lane < kBlock; ++lane) {
    target[count - kBlock + lane] = powers[lane];
    lanes[lane] += lane < again ? 0.0f : powers[lane];
  }
  const float factor = 1.0f / combined(lanes, [](float a, float b) { return a + b; });
  for (std::size_t i = 0; i < count; ++i) { target[i] *= factor; }
}

void softmax(const float* source, float* target, std::size_t num_rows, std::size_t count,
             float beta) {
  if (count == 2) {
    softmax_of_pairs(source, target, num_rows, beta);
    return;
  }
  for (; num_rows > 0; --num_rows, source += count, target += count) {
    if (count < kBlock) {
      softmax_of_few(source, target, count, beta);
    } else {
      softmax_of_blocks(source, target, count, beta);
    }
  }
}

void log_softmax(const float* source, float* target, std::size_t count, float beta) {
  const float top = largest(source, count);
  const float sum =
      sum_of(count, [=](std::size_t i) { return exponential_below(beta * (source[i] - top)); });
  const float logarithm = std::log(sum);
  for (std::size_t i = 0; i < count; ++i) { target[i] = beta * (source[i] - top) - logarithm; }
}

template <typename T>
std::unique_ptr<Step> make_of_quantised(const Operands& operands, std::size_t length, float beta,
                                        bool is_log) {
  const QuantisedPowers powers(Scale::of(*operands.inputs[0]).scale, beta);
  const Scale out = Scale::of(*operands.outputs[0]);
  return make_rows<T>(operands, length, [=](const T* source, T* target, std::size_t count) {
    softmax_of_quantised(powers, out, is_log, source, target, count);
  });
}

std::unique_ptr<Step> make_softmax(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_Softmax();
  require_arity(operands, 1, 1);
  const auto& source = *operands.inputs[0];
  require(operands, source.rank() > 0 && source.shape == operands.outputs[0]->shape,
          "input and output differ");
  require(operands, source.type == operands.outputs[0]->type, "input and output differ in type");
  require_one_scale(operands);
  const std::size_t length = source.shape.back();
  const float beta = attributes.beta();
  const bool is_log = attributes.logarithm();
  switch (source.type) {
    case program::Type::float32:
      // Called by name, so that they are inlined into the loops over rows for each processor.
      return make_rows<float>(
          operands, length, [=](const float* from, float* to, std::size_t rows, std::size_t count) {
            if (!is_log) {
              softmax(from, to, rows, count, beta);
              return;
            }
            for (std::size_t i = 0; i < rows; ++i) {
              log_softmax(from + i * count, to + i * count, count, beta);
            }
          });
    case program::Type::int8: return make_of_quantised<std::int8_t>(operands, length, beta, is_log);
    case program::Type::uint8:
      return make_of_quantised<std::uint8_t>(operands, length, beta, is_log);
    default: return nullptr;
  }
}

const Registration registered{program::Operator::Softmax, make_softmax};

}  // namespace

}  // namespace arenite
