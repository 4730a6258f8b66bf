#include "quantised_attention.hpp"

#include <algorithm>

#include "kernels/attention.hpp"
#include "kernels/gemm.hpp"
#include "kernels/processor.hpp"

namespace arenite {

namespace {

constexpr std::size_t kKeys = kGemmRows;    // at a time
constexpr std::size_t kLanes = kGemmPanel;  // queries side by side
constexpr std::size_t kFewQueries = 3;      // up to so many are multiplied one by one
static_assert(kQuantisedQueries == kLanes);
// Sums of products of bytes are exact as floats: of a head, and of a block of keys.
constexpr std::size_t kLargestProduct = std::size_t{255} * 255;
static_assert(std::max(kLargestHead, kKeys) * kLargestProduct < std::size_t{1} << 24);

constexpr std::int32_t kLeast = std::numeric_limits<std::int8_t>::min();
constexpr std::int32_t kMost = std::numeric_limits<std::int8_t>::max();

// Writes rows of bytes as floats side by side, less what stands for zero.
void widen(const std::int8_t* from, std::size_t stride, std::size_t rows, std::size_t columns,
           std::int32_t zero, float* to) {
  with_widest_vectors([=] {
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t i = 0; i < columns; ++i) {
        to[row * columns + i] = static_cast<float>(from[row * stride + i] - zero);
      }
    }
  });
}

// Writes rows of bytes as columns of floats: `count` of them, a lane each; other lanes are zeros.
// `row(c)` is where row c begins.
template <typename Row>
void turn(const Row& row, std::size_t count, std::size_t length, std::int32_t zero, float* to) {
  for (std::size_t c = 0; c < kLanes; ++c) {
    if (c >= count) {
      for (std::size_t i = 0; i < length; ++i) { to[i * kLanes + c] = 0.0f; }
      continue;
    }
    const std::int8_t* const from = row(c);
    for (std::size_t i = 0; i < length; ++i) {
      to[i * kLanes + c] = static_cast<float>(from[i] - zero);
    }
  }
}

// Rounds floats to bytes.
void round(const float* from, std::size_t count, float factor, std::int32_t zero, std::int8_t* to) {
  with_widest_vectors([=] {
    const Rounding<std::int8_t> rounding(kLeast, kMost, zero);
    for (std::size_t i = 0; i < count; ++i) { to[i] = rounding(from[i] * factor); }
  });
}

// Writes the scores of each query, one row of bytes after the other. A function of its own, so that
// its working memory does not lie beside that of `mix`.
template <std::size_t LargestHead>
[[gnu::noinline]] void score(const QuantisedAttention& attention, const QuantisedKeys& keys,
                             const QuantisedQuery* queries, std::size_t count,
                             std::int8_t* scores) {
  alignas(64) float lanes[LargestHead * kLanes];
  alignas(64) float block[LargestHead * kKeys];
  alignas(64) float products[kKeys * kLanes];
  alignas(64) std::int8_t rounded[kKeys * kLanes];
  const bool is_few = count <= kFewQueries;
  const std::size_t depth = keys.depth;
  if (is_few) {
    for (std::size_t c = 0; c < count; ++c) {
      widen(queries[c].query, depth, 1, depth, attention.query_zero, lanes + c * depth);
    }
  } else {
    turn([=](std::size_t c) { return queries[c].query; }, count, depth, attention.query_zero,
         lanes);
  }
  for (std::size_t first = 0; first < keys.count; first += kKeys) {
    const std::size_t num_keys = std::min(kKeys, keys.count - first);
    widen(keys.keys + first * keys.key_stride, keys.key_stride, num_keys, depth, attention.key_zero,
          block);
    if (is_few) {
      for (std::size_t c = 0; c < count; ++c) {
        gemm_row(lanes + c * depth, block, true, depth, depth, 0, num_keys, products);
        round(products, num_keys, attention.score_factor, attention.score_zero,
              scores + c * keys.count + first);
      }
      continue;
    }
    gemm_rows({block, depth, 1}, lanes, kLanes, depth, 0, num_keys, products);
    round(products, num_keys * kLanes, attention.score_factor, attention.score_zero, rounded);
    for (std::size_t c = 0; c < count; ++c) {
      std::int8_t* const row = scores + c * keys.count + first;
      for (std::size_t j = 0; j < num_keys; ++j) { row[j] = rounded[j * kLanes + c]; }
    }
  }
}

// Makes weights of the scores of a query, in their place.
void weigh(const QuantisedAttention& attention, std::int8_t* scores, std::size_t count) {
  if (const std::int8_t* const table = attention.table) {
    for (std::size_t j = 0; j < count; ++j) { scores[j] = table[scores[j] - kLeast]; }
  }
  with_widest_vectors([powers = &attention.powers, weights = attention.weights, scores, count] {
    softmax_of_quantised(*powers, weights, false, scores, scores, count);
  });
}

// Adds sums of a block, which are whole numbers.
void add(const float* from, std::size_t count, std::uint32_t* to) {
  with_widest_vectors([=] {
    for (std::size_t i = 0; i < count; ++i) {
      to[i] += static_cast<std::uint32_t>(static_cast<std::int32_t>(from[i]));
    }
  });
}

// Writes the products of weights and values.
template <std::size_t LargestHead>
[[gnu::noinline]] void mix(const QuantisedAttention& attention, const QuantisedKeys& keys,
                           const QuantisedQuery* queries, std::size_t count,
                           const std::int8_t* weights) {
  alignas(64) std::uint32_t totals[LargestHead * kLanes] = {};  // they wrap
  alignas(64) float block[LargestHead * kKeys];
  alignas(64) float lanes[kKeys * kLanes];
  alignas(64) float parts[std::max(LargestHead, kGemmRows * kLanes)];
  const bool is_few = count <= kFewQueries;
  const std::size_t width = keys.width;
  const std::int32_t zero = attention.weights.zero_point;
  for (std::size_t first = 0; first < keys.count; first += kKeys) {
    const std::size_t num_keys = std::min(kKeys, keys.count - first);
    widen(keys.values + first * keys.value_stride, keys.value_stride, num_keys, width,
          attention.value_zero, block);
    if (is_few) {
      for (std::size_t c = 0; c < count; ++c) {
        widen(weights + c * keys.count + first, num_keys, 1, num_keys, zero, lanes);
        gemm_row(lanes, block, false, width, num_keys, 0, width, parts);
        add(parts, width, totals + c * width);
      }
      continue;
    }
    turn([&](std::size_t c) { return weights + c * keys.count + first; }, count, num_keys, zero,
         lanes);
    for (std::size_t start = 0; start < width; start += kGemmRows) {
      const std::size_t some = std::min(kGemmRows, width - start);
      gemm_rows({block + start, 1, width}, lanes, kLanes, num_keys, 0, some, parts);
      add(parts, some * kLanes, totals + start * kLanes);
    }
  }
  const Rounding<std::int8_t> rounding(kLeast, kMost, attention.result_zero);
  const std::size_t of_query = is_few ? width : 1;
  const std::size_t of_value = is_few ? 1 : kLanes;
  for (std::size_t c = 0; c < count; ++c) {
    for (std::size_t v = 0; v < width; ++v) {
      const auto sum = static_cast<std::int32_t>(totals[c * of_query + v * of_value]);
      queries[c].result[v] = rounding(static_cast<float>(sum) * attention.result_factor);
    }
  }
}

template <std::size_t LargestHead>
void attend_up_to(const QuantisedAttention& attention, const QuantisedKeys& keys,
                  const QuantisedQuery* queries, std::size_t count, std::int8_t* scores) {
  score<LargestHead>(attention, keys, queries, count, scores);
  for (std::size_t c = 0; c < count; ++c) { weigh(attention, scores + c * keys.count, keys.count); }
  mix<LargestHead>(attention, keys, queries, count, scores);
}

}  // namespace

void attend(const QuantisedAttention& attention, const QuantisedKeys& keys,
            const QuantisedQuery* queries, std::size_t count, std::int8_t* scores) {
  constexpr std::size_t kCommonHead = 64;  // with less than 16 KiB of working memory
  if (std::max(keys.depth, keys.width) <= kCommonHead) {
    attend_up_to<kCommonHead>(attention, keys, queries, count, scores);
  } else {
    attend_up_to<kLargestHead>(attention, keys, queries, count, scores);
  }
}

}  // namespace arenite
