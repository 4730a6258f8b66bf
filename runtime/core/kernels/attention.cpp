#include "attention.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/approximations.hpp"
#include "kernels/attention_tile.hpp"
#include "kernels/gemm.hpp"
#include "kernels/parallel.hpp"
#include "kernels/processor.hpp"
#include "kernels/turned_square.hpp"

namespace arenite {

namespace {

// Blocks begin at multiples of this, so that sums do not depend on what else is computed.
constexpr std::size_t kBlock = 4 * kGemmRows;
constexpr std::size_t kWidth = kGemmPanel;
constexpr std::size_t kValues = kGemmRows;  // elements of values that are added up at a time
static_assert(kAttentionQueries == kWidth);
constexpr float kHidden = -std::numeric_limits<float>::infinity();
// Below all scores, but finite: the difference of a hidden score is a number.
constexpr float kLowest = std::numeric_limits<float>::lowest();

struct Blocks {
  std::size_t first = 0;  // key
  std::size_t end = 0;

  Blocks() = default;
  Blocks(const AttentionKeys& keys, const AttentionQuery* queries, std::size_t count) {
    first = keys.count;
    for (std::size_t i = 0; i < count; ++i) {
      if (queries[i].first >= queries[i].end) { continue; }
      first = std::min(first, queries[i].first / kBlock * kBlock);
      end = std::max(end, queries[i].end);
    }
  }
};

// The reciprocal of a sum; zeros where no key is seen.
float reciprocal(float sum) { return sum == 0.0f ? 0.0f : 1.0f / sum; }

void write_times(SquareRow row, float factor, float* to) {
  float values[kSquare];
  std::memcpy(values, &row, sizeof row);
  for (std::size_t i = 0; i < kSquare; ++i) { to[i] = values[i] * factor; }
}

// Queries side by side: each lane of a vector is a query, and keys and values are read as they lie.
// Working memory is for keys and values of up to so many elements.
template <std::size_t LargestHead>
class SideBySide {
 public:
  // `converted` has room for kConvertedFloats, if keys or values are no 32-bit floats.
  SideBySide(const AttentionKeys& keys, const AttentionQuery* queries, std::size_t count,
             float* converted)
      : keys_(keys),
        queries_(queries),
        count_(count),
        converted_(converted),
        packed_(memory_),
        totals_(packed_ + keys.keys.width * kWidth),
        weights_(totals_ + keys.values.width * kWidth),
        parts_(weights_ + kBlock * kWidth) {}

  void run() {
    pack();
    std::fill_n(top_, kWidth, kLowest);
    std::fill_n(sum_, kWidth, 0.0f);
    std::fill_n(totals_, keys_.values.width * kWidth, 0.0f);
    const Blocks blocks(keys_, queries_, count_);
    for (std::size_t first = blocks.first; first < blocks.end; first += kBlock) {
      const std::size_t num_keys = std::min(kBlock, keys_.count - first);
      score(first, num_keys);
      weigh(num_keys);
      mix(first, num_keys);
    }
    finish();
  }

 private:
  // Queries as a panel: depth, lanes.
  void pack() {
    const auto query = [this](std::size_t c) { return queries_[std::min(c, count_ - 1)].query; };
    const std::size_t whole = keys_.keys.width / kSquare * kSquare;
    for (std::size_t c = 0; c < kWidth; c += kSquare) {
      for (std::size_t k = 0; k < whole; k += kSquare) {
        const Square square =
            turned_square(query(c) + k, query(c + 1) + k, query(c + 2) + k, query(c + 3) + k);
        for (std::size_t i = 0; i < kSquare; ++i) {
          write_times(square.rows[i], keys_.scale, packed_ + (k + i) * kWidth + c);
        }
      }
    }
    for (std::size_t c = 0; c < kWidth; ++c) {
      for (std::size_t k = whole; k < keys_.keys.width; ++k) {
        packed_[k * kWidth + c] = query(c)[k] * keys_.scale;
      }
    }
  }

  void score(std::size_t first, std::size_t num_keys) {
    with_floats(keys_.keys, first, num_keys, converted_,
                [this](const float* from, std::size_t stride, std::size_t done, std::size_t some) {
                  multiply(from, stride, some, weights_ + done * kWidth);
                });
    if (keys_.softcap != 0.0f) {
      with_widest_vectors([scores = weights_, size = num_keys * kWidth, cap = keys_.softcap] {
        for (std::size_t i = 0; i < size; ++i) {
          scores[i] = cap * hyperbolic_tangent(scores[i] / cap);
        }
      });
    }
    for (std::size_t c = 0; c < count_; ++c) {
      const AttentionQuery& query = queries_[c];
      float* const scores = weights_ + c;
      if (query.addend != nullptr) {
        const float* const addend = query.addend + first;
        for (std::size_t j = 0; j < num_keys; ++j) { scores[j * kWidth] += addend[j]; }
      }
      const std::size_t seen = query.first > first ? std::min(query.first - first, num_keys) : 0;
      for (std::size_t j = 0; j < seen; ++j) { scores[j * kWidth] = kHidden; }
      for (std::size_t j = query.end > first ? query.end - first : 0; j < num_keys; ++j) {
        scores[j * kWidth] = kHidden;
      }
    }
  }

  void multiply(const float* keys, std::size_t stride, std::size_t count, float* scores) {
    const std::size_t width = keys_.keys.width;
    if constexpr (kHasAttentionTiles) {
      if (width % kAttentionRows == 0 && width > 0) {
        return score_keys(keys, stride, count, packed_, width, scores);
      }
    }
    gemm_rows({keys, stride, 1}, packed_, kWidth, width, 0, count, scores);
  }

  // Scores become weights, relative to the highest score so far.
  void weigh(std::size_t num_keys) {
    if constexpr (kHasAttentionTiles) {
      return weigh_keys(weights_, num_keys, top_, sum_, factors_);
    }
    with_widest_vectors(
        [num_keys, weights = weights_, tops = top_, sums = sum_, factors = factors_] {
          float top[kWidth];
          float sum[kWidth];
#pragma GCC unroll 1
          for (std::size_t i = 0; i < kWidth; ++i) { top[i] = tops[i]; }
          for (std::size_t j = 0; j < num_keys; ++j) {
#pragma GCC unroll 1
            for (std::size_t i = 0; i < kWidth; ++i) {
              const float score = weights[j * kWidth + i];
              top[i] = score > top[i] ? score : top[i];
            }
          }
#pragma GCC unroll 1
          for (std::size_t i = 0; i < kWidth; ++i) {
            const float factor = exponential_below(tops[i] - top[i]);
            factors[i] = factor;
            sum[i] = sums[i] * factor;
            tops[i] = top[i];
          }
          for (std::size_t j = 0; j < num_keys; ++j) {
#pragma GCC unroll 1
            for (std::size_t i = 0; i < kWidth; ++i) {
              const float weight = exponential_below(weights[j * kWidth + i] - top[i]);
              weights[j * kWidth + i] = weight;
              sum[i] += weight;
            }
          }
#pragma GCC unroll 1
          for (std::size_t i = 0; i < kWidth; ++i) { sums[i] = sum[i]; }
        });
  }

  // Adds the weighted values to the totals, which are made relative to the highest score first.
  void mix(std::size_t first, std::size_t num_keys) {
    with_floats(keys_.values, first, num_keys, converted_,
                [this](const float* from, std::size_t stride, std::size_t done, std::size_t some) {
                  if (done != 0) { std::fill_n(factors_, kWidth, 1.0f); }
                  add(from, stride, weights_ + done * kWidth, some);
                });
  }

  void add(const float* values, std::size_t stride, const float* weights, std::size_t num_keys) {
    if constexpr (kHasAttentionTiles) {
      if (keys_.values.width % kAttentionRows == 0) {
        return add_values(values, stride, keys_.values.width, weights, num_keys, factors_, totals_);
      }
    }
    for (std::size_t start = 0; start < keys_.values.width; start += kValues) {
      const std::size_t count = std::min(kValues, keys_.values.width - start);
      gemm_rows({values + start, 1, stride}, weights, kWidth, num_keys, 0, count, parts_);
      with_widest_vectors([count, parts = parts_, factors = factors_,
                           totals = totals_ + start * kWidth] {
        for (std::size_t v = 0; v < count; ++v) {
#pragma GCC unroll 1
          for (std::size_t i = 0; i < kWidth; ++i) {
            totals[v * kWidth + i] = totals[v * kWidth + i] * factors[i] + parts[v * kWidth + i];
          }
        }
      });
    }
  }

  void finish() const {
    const std::size_t whole = keys_.values.width / kSquare * kSquare;
    for (std::size_t c = 0; c < count_; c += kSquare) {
      const std::size_t some = std::min(kSquare, count_ - c);
      float factors[kSquare];
      for (std::size_t i = 0; i < some; ++i) { factors[i] = reciprocal(sum_[c + i]); }
      for (std::size_t v = 0; v < whole; v += kSquare) {
        const Square square = turned_square(totals_ + v * kWidth + c, kWidth * sizeof(float));
        for (std::size_t i = 0; i < some; ++i) {
          write_times(square.rows[i], factors[i], queries_[c + i].result + v);
        }
      }
      for (std::size_t i = 0; i < some; ++i) {
        for (std::size_t v = whole; v < keys_.values.width; ++v) {
          queries_[c + i].result[v] = totals_[v * kWidth + c + i] * factors[i];
        }
      }
    }
  }

  const AttentionKeys& keys_;
  const AttentionQuery* queries_;
  std::size_t count_;
  float* converted_;
  float* packed_;   // depth, lanes
  float* totals_;   // width, lanes
  float* weights_;  // kBlock, lanes; scores at first
  float* parts_;    // kValues, lanes
  alignas(64) float top_[kWidth];
  alignas(64) float sum_[kWidth];
  alignas(64) float factors_[kWidth];
  alignas(64) float memory_[kWidth * (2 * LargestHead + kBlock + kValues)];
};

// One query: keys are the rows of a matrix that it is multiplied by, and so are values.
class Single {
 public:
  void begin(const AttentionKeys& keys, const AttentionQuery& query) {
    keys_ = &keys;
    query_ = &query;
    blocks_ = Blocks(keys, &query, 1);
    top_ = kLowest;
    sum_ = 0.0f;
    for (std::size_t k = 0; k < keys.keys.width; ++k) { packed_[k] = query.query[k] * keys.scale; }
    std::fill_n(totals_, keys.values.width, 0.0f);
  }

  // Whether it sees a key of the block that begins here.
  bool sees(std::size_t first) const { return first >= blocks_.first && first < blocks_.end; }

  // Multiplies keys, of which `done` of the block came before.
  void multiply(const float* keys, std::size_t stride, std::size_t done, std::size_t count) {
    gemm_row(packed_, keys, true, stride, keys_->keys.width, 0, count, scores_ + done);
  }

  // Scores of the block become weights.
  void weigh(std::size_t first, std::size_t num_keys) {
    bound(first, num_keys);
    std::fill(scores_ + num_keys, scores_ + kBlock, kHidden);
    with_widest_vectors([this] {
      float lanes[kWidth];
      for (float& lane : lanes) { lane = top_; }
      for (std::size_t done = 0; done < kBlock; done += kWidth) {
#pragma GCC unroll 1
        for (std::size_t i = 0; i < kWidth; ++i) {
          lanes[i] = scores_[done + i] > lanes[i] ? scores_[done + i] : lanes[i];
        }
      }
      const float top = *std::max_element(lanes, lanes + kWidth);
      factor_ = exponential_below(top_ - top);
      top_ = top;
      float sums[kWidth] = {};
      for (std::size_t done = 0; done < kBlock; done += kWidth) {
#pragma GCC unroll 1
        for (std::size_t i = 0; i < kWidth; ++i) {
          const float weight = exponential_below(scores_[done + i] - top);
          scores_[done + i] = weight;
          sums[i] += weight;
        }
      }
      float sum = 0.0f;
      for (const float each : sums) { sum += each; }
      sum_ = sum_ * factor_ + sum;
    });
  }

  // Adds weighted values, of which `done` of the block came before.
  void mix(const float* values, std::size_t stride, std::size_t done, std::size_t count) {
    const std::size_t width = keys_->values.width;
    const float factor = done == 0 ? factor_ : 1.0f;
    alignas(64) float part[kLargestHead];
    gemm_row(scores_ + done, values, false, stride, count, 0, width, part);
    for (std::size_t v = 0; v < width; ++v) { totals_[v] = totals_[v] * factor + part[v]; }
  }

  void finish() const {
    const float factor = reciprocal(sum_);
    for (std::size_t v = 0; v < keys_->values.width; ++v) {
      query_->result[v] = totals_[v] * factor;
    }
  }

 private:
  void bound(std::size_t first, std::size_t num_keys) {
    if (keys_->softcap != 0.0f) {
      for (std::size_t j = 0; j < num_keys; ++j) {
        scores_[j] = keys_->softcap * hyperbolic_tangent(scores_[j] / keys_->softcap);
      }
    }
    if (query_->addend != nullptr) {
      for (std::size_t j = 0; j < num_keys; ++j) { scores_[j] += query_->addend[first + j]; }
    }
    for (std::size_t j = 0; j < num_keys; ++j) {
      if (first + j < query_->first || first + j >= query_->end) { scores_[j] = kHidden; }
    }
  }

  const AttentionKeys* keys_ = nullptr;
  const AttentionQuery* query_ = nullptr;
  Blocks blocks_;
  float top_ = kLowest;
  float sum_ = 0.0f;
  float factor_ = 0.0f;
  alignas(64) float packed_[kLargestHead];
  alignas(64) float scores_[kBlock];
  alignas(64) float totals_[kLargestHead];
};

// Functions of their own, so that working memory of one does not lie beside that of the other.

// A few queries one by one, but block by block: keys and values are read from memory once.
[[gnu::noinline]] void attend_one_by_one(const AttentionKeys& keys, const AttentionQuery* queries,
                                         std::size_t count, float* converted) {
  Single singles[kFewAttentionQueries];
  for (std::size_t i = 0; i < count; ++i) { singles[i].begin(keys, queries[i]); }
  const Blocks blocks(keys, queries, count);
  for (std::size_t first = blocks.first; first < blocks.end; first += kBlock) {
    const std::size_t num_keys = std::min(kBlock, keys.count - first);
    const auto each = [&](const auto& use) {
      for (std::size_t i = 0; i < count; ++i) {
        if (singles[i].sees(first)) { use(singles[i]); }
      }
    };
    with_floats(keys.keys, first, num_keys, converted,
                [&](const float* from, std::size_t stride, std::size_t done, std::size_t some) {
                  each([&](Single& query) { query.multiply(from, stride, done, some); });
                });
    each([&](Single& query) { query.weigh(first, num_keys); });
    with_floats(keys.values, first, num_keys, converted,
                [&](const float* from, std::size_t stride, std::size_t done, std::size_t some) {
                  each([&](Single& query) { query.mix(from, stride, done, some); });
                });
  }
  for (std::size_t i = 0; i < count; ++i) { singles[i].finish(); }
}

template <std::size_t LargestHead>
[[gnu::noinline]] void attend_side_by_side(const AttentionKeys& keys, const AttentionQuery* queries,
                                           std::size_t count, float* converted) {
  SideBySide<LargestHead>(keys, queries, count, converted).run();
}

void attend(const AttentionKeys& keys, const AttentionQuery* queries, std::size_t count,
            bool one_by_one, float* converted) {
  constexpr std::size_t kCommonHead = 64;  // with less than 16 KiB of working memory
  if (one_by_one) {
    attend_one_by_one(keys, queries, count, converted);
  } else if (std::max(keys.keys.width, keys.values.width) <= kCommonHead) {
    attend_side_by_side<kCommonHead>(keys, queries, count, converted);
  } else {
    attend_side_by_side<kLargestHead>(keys, queries, count, converted);
  }
}

[[gnu::noinline]] void attend_to_converted(const AttentionKeys& keys, const AttentionQuery* queries,
                                           std::size_t count, bool one_by_one) {
  alignas(64) float converted[kConvertedFloats];
  attend(keys, queries, count, one_by_one, converted);
}

}  // namespace

void attend(const AttentionKeys& keys, const AttentionQuery* queries, std::size_t count,
            bool one_by_one) {
  if (keys.keys.kind != RowKind::floats || keys.values.kind != RowKind::floats) {
    attend_to_converted(keys, queries, count, one_by_one);
  } else {
    attend(keys, queries, count, one_by_one, nullptr);
  }
}

}  // namespace arenite
