#include "live_index.hpp"

#include <algorithm>

namespace arenite {

LiveIndex::LiveIndex(const std::vector<UsageRecord>& records) {
  std::vector<std::int64_t> starts;
  starts.reserve(records.size());
  for (const UsageRecord& record : records) starts.push_back(record.start);
  std::sort(starts.begin(), starts.end());
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());

  const auto rank = [&starts](std::int64_t step) {
    return static_cast<int>(std::lower_bound(starts.begin(), starts.end(), step) - starts.begin());
  };
  ranks_.reserve(records.size());
  for (const UsageRecord& record : records) {
    ranks_.push_back({rank(record.start), rank(record.end)});
  }
  while (num_leaves_ < static_cast<int>(starts.size())) num_leaves_ *= 2;
  starting_at_.resize(starts.size());
  covering_.resize(2 * static_cast<std::size_t>(num_leaves_));
}

void LiveIndex::insert(int record) {
  const auto [first, last] = ranks_[record];
  starting_at_[first].push_back(record);
  int left = first + num_leaves_;
  int right = last + num_leaves_;
  for (; left < right; left /= 2, right /= 2) {
    if (left % 2 == 1) covering_[left++].push_back(record);
    if (right % 2 == 1) covering_[--right].push_back(record);
  }
}

void LiveIndex::collect(int record, std::vector<int>& found) const {
  found.clear();
  const auto [first, last] = ranks_[record];
  for (int node = first + num_leaves_; node >= 1; node /= 2) {
    found.insert(found.end(), covering_[node].begin(), covering_[node].end());
  }
  for (int rank = first + 1; rank < last; ++rank) {
    found.insert(found.end(), starting_at_[rank].begin(), starting_at_[rank].end());
  }
}

}  // namespace arenite
