// What ARM64 has for attention of kAttentionQueries queries side by side: products that read keys
// and values as they lie, where packing them for so few queries would take a quarter of the time,
// and weights of all queries at once.
#pragma once

#include <cstddef>

#include "kernels/processor.hpp"

namespace arenite {

#ifdef ARENITE_ARM64
constexpr bool kHasAttentionTiles = true;
#else
constexpr bool kHasAttentionTiles = false;
#endif

// Rows of a tile; depths of keys and widths of values are multiples of it.
constexpr std::size_t kAttentionRows = 4;

// Scores of `count` keys, which begin `stride` floats apart. Those up to the next multiple of
// kAttentionRows are written, too, and are any numbers.
void score_keys(const float* keys, std::size_t stride, std::size_t count, const float* queries,
                std::size_t depth, float* scores);

// Multiplies totals, of which each element of values has one of each query, by the query's factor,
// and adds the values of `num_keys` keys times their weights.
void add_values(const float* values, std::size_t stride, std::size_t width, const float* weights,
                std::size_t num_keys, const float* factors, float* totals);

// Scores become weights, relative to the highest score so far; `factors` make earlier ones so.
void weigh_keys(float* scores, std::size_t num_keys, float* tops, float* sums, float* factors);

}  // namespace arenite
