// Which placed records are live together with a given one.
#pragma once

#include <cstdint>
#include <vector>

#include "usage_record.hpp"

namespace arenite {

// A segment tree over the distinct starts. Two lifetimes meet exactly when the later
// start lies in both, so ranks of starts are all the time there is.
//
// insert: O(log n). collect: O(log n + starts inside the lifetime + records found).
class LiveIndex {
 public:
  explicit LiveIndex(const std::vector<UsageRecord>& records);

  void insert(int record);
  // Replaces `found` by the inserted records that meet `record`, in no particular order.
  void collect(int record, std::vector<int>& found) const;

 private:
  // Ranks of the distinct starts inside a lifetime, half-open.
  struct Ranks {
    int first;
    int last;
  };

  std::vector<Ranks> ranks_;
  std::vector<std::vector<int>> starting_at_;  // by rank of the start
  std::vector<std::vector<int>> covering_;     // by tree node: records that cover all of it
  int num_leaves_ = 1;
};

}  // namespace arenite
