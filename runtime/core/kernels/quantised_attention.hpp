// Attention of some queries to the keys of one head, all of signed bytes.
//
// Scores and weights are rounded to bytes, as if products and softmax were steps of their own. All
// of them exist for the queries that are computed together.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/quantised_softmax.hpp"

namespace arenite {

constexpr std::size_t kQuantisedQueries = 16;  // at a time, at most

// How numbers become bytes on the way.
struct QuantisedAttention {
  std::int32_t query_zero;
  std::int32_t key_zero;
  std::int32_t value_zero;
  float score_factor;  // scale of queries * scale of keys / scale of scores
  std::int32_t score_zero;
  const std::int8_t*
      table;               // what the softmax reads for each score, of -128 first; null: the score
  QuantisedPowers powers;  // of what the softmax reads
  Scale weights;
  float result_factor;  // scale of weights * scale of values / scale of results
  std::int32_t result_zero;
};

// Keys and values of one head, at least one.
struct QuantisedKeys {
  const std::int8_t* keys;
  const std::int8_t* values;
  std::size_t key_stride;    // elements from one key to the next
  std::size_t value_stride;  // the same of values
  std::size_t count;
  std::size_t depth;  // elements of a key, up to kLargestHead
  std::size_t width;  // of a value, up to kLargestHead
};

struct QuantisedQuery {
  const std::int8_t* query;
  std::int8_t* result;  // may be the query itself
};

// Writes the results of up to kQuantisedQueries queries. Each is the same to the bit whichever
// others are computed with it, and on every processor. `scores` is working memory: a byte for each
// key and query.
void attend(const QuantisedAttention& attention, const QuantisedKeys& keys,
            const QuantisedQuery* queries, std::size_t count, std::int8_t* scores);

}  // namespace arenite
