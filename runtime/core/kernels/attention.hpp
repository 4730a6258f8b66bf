// Attention of some queries to the keys of one head, a block of keys at a time.
#pragma once

#include <cstddef>

#include "kernels/attention_rows.hpp"

namespace arenite {

constexpr std::size_t kAttentionQueries = 16;    // at a time, at most
constexpr std::size_t kLargestHead = 256;        // elements of a key, or of a value
constexpr std::size_t kFewAttentionQueries = 5;  // up to so many are computed one by one

// Keys and values of one head.
struct AttentionKeys {
  AttentionRows keys;
  AttentionRows values;
  std::size_t count;  // those that count
  float scale;
  float softcap;  // 0: none
};

struct AttentionQuery {
  const float* query;
  const float* addend;  // of the score of each key; null: none
  float* result;        // may be the query itself
  std::size_t first;    // keys [first, end) are seen
  std::size_t end;
};

// Writes the results of up to kAttentionQueries queries. Each is the same to the bit whichever
// others are computed with it, as long as `one_by_one` is the same.
void attend(const AttentionKeys& keys, const AttentionQuery* queries, std::size_t count,
            bool one_by_one);

}  // namespace arenite
