#include "local_search.hpp"

#include <algorithm>
#include <numeric>

namespace arenite {
namespace {

constexpr int kTriesForOneInTheWay = 16;
constexpr std::uint64_t kOneInSoManyIsBlind = 4;

}  // namespace

LocalSearch::LocalSearch(const std::vector<UsageRecord>& all, const std::vector<int>& members) {
  for (const int index : members) records_.push_back(all[index]);
}

void LocalSearch::begin_at(const std::vector<std::int64_t>& offsets) {
  order_.resize(offsets.size());
  std::iota(order_.begin(), order_.end(), 0);
  std::stable_sort(order_.begin(), order_.end(),
                   [&](int a, int b) { return offsets[a] < offsets[b]; });
  offsets_ = place_in_order(records_, order_, Fit::kFirst);
  height_ = height_of(offsets_);
}

bool LocalSearch::step(std::mt19937_64& random) {
  const std::uint64_t count = order_.size();
  std::vector<std::size_t> at_the_top;
  for (std::size_t turn = 0; turn < count; ++turn) {
    const int record = order_[turn];
    if (offsets_[record] + records_[record].size == height_) at_the_top.push_back(turn);
  }
  std::size_t from = at_the_top[random() % at_the_top.size()];
  if (random() % kOneInSoManyIsBlind == 0) from = random() % count;
  const UsageRecord& moved = records_[order_[from]];
  std::size_t to = random() % (from + 1);
  for (int tries = 0; tries < kTriesForOneInTheWay; ++tries) {
    const UsageRecord& other = records_[order_[to]];
    if (other.start < moved.end && moved.start < other.end) break;
    to = random() % (from + 1);
  }
  const auto first = order_.begin() + static_cast<std::ptrdiff_t>(to);
  const auto last = order_.begin() + static_cast<std::ptrdiff_t>(from);
  std::rotate(first, last, last + 1);
  std::vector<std::int64_t> offsets = place_in_order(records_, order_, Fit::kFirst);
  const std::int64_t height = height_of(offsets);
  if (height > height_) {
    std::rotate(first, first + 1, last + 1);
    return false;
  }
  const bool is_lower = height < height_;
  offsets_ = std::move(offsets);
  height_ = height;
  return is_lower;
}

std::int64_t LocalSearch::height_of(const std::vector<std::int64_t>& offsets) const {
  std::int64_t height = 0;
  for (std::size_t index = 0; index < offsets.size(); ++index) {
    height = std::max(height, offsets[index] + records_[index].size);
  }
  return height;
}

}  // namespace arenite
