// Better plans by small changes to the order in which records are dropped into gaps.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "gap_search.hpp"
#include "sections.hpp"

namespace arenite {

// Dropped in the order of their offsets in some plan, each into the lowest gap, no record
// comes to lie higher than in that plan. From there one record at a time changes its turn: in
// most steps one that reaches the top comes before another that is in its way. A change that
// does no harm is kept.
class LocalSearch {
 public:
  LocalSearch(const std::vector<UsageRecord>& all, const std::vector<int>& members);

  // Goes on from a plan: the offset of each of the members.
  void begin_at(const std::vector<std::int64_t>& offsets);
  // Tries one change; returns whether the plan became lower.
  bool step(std::mt19937_64& random);

  const std::vector<std::int64_t>& offsets() const { return offsets_; }
  std::int64_t height() const { return height_; }

 private:
  std::int64_t height_of(const std::vector<std::int64_t>& offsets) const;

  std::vector<UsageRecord> records_;
  std::vector<int> order_;
  std::vector<std::int64_t> offsets_;
  std::int64_t height_ = 0;
};

}  // namespace arenite
