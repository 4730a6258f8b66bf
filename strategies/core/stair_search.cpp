#include "stair_search.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace arenite {
namespace {

constexpr std::int64_t kImmovable = std::int64_t{1} << 40;  // more than weights add up to
// Short attempts from different plans find more than long ones: what succeeds does so early.
constexpr std::int64_t kNodesBesides = 1000;  // in an attempt, beside one for each record
constexpr int kVainAttempts = 64;
constexpr std::int64_t kFine = 512;  // of the bound: what is not worth an attempt of its own
constexpr int kShifts = 3;
constexpr std::int64_t kNodesBetweenPolls = 64;

std::int64_t divide_down(std::int64_t value, std::int64_t by) {
  return value >= 0 ? value / by : -((-value + by - 1) / by);
}

std::int64_t divide_up(std::int64_t value, std::int64_t by) {
  return divide_down(value + by - 1, by);
}

}  // namespace

StairSearch::StairSearch(std::vector<RigidRecord> records, std::int64_t lower_bound,
                         std::uint64_t seed)
    : records_(std::move(records)),
      conflicts_(find_conflicts(records_)),
      lower_bound_(lower_bound),
      random_(seed),
      height_(std::numeric_limits<std::int64_t>::max()),
      offsets_(records_.size()),
      is_placed_(records_.size()),
      weights_(records_.size(), 1) {
  // A capacity below the top of a fixed record would not be met.
  for (const RigidRecord& record : records_) {
    if (record.fixed >= 0) lower_bound_ = std::max(lower_bound_, record.fixed + record.size);
  }
}

void StairSearch::drop(const std::vector<int>& order) {
  orders_.push_back(order);
  begin_at(std::numeric_limits<std::int64_t>::max(), order);
  keep_if_lower(offsets_);
}

void StairSearch::place_fixed() {
  for (std::size_t record = 0; record < records_.size(); ++record) {
    is_placed_[record] = records_[record].fixed >= 0 ? 1 : 0;
    if (is_placed_[record] != 0) offsets_[record] = records_[record].fixed;
  }
}

std::int64_t StairSearch::lowest_place(int record) {
  work_ += static_cast<std::int64_t>(conflicts_[record].size());
  forbidden_.clear();
  for (const Conflict& conflict : conflicts_[record]) {
    if (!is_placed_[conflict.other]) continue;
    const std::int64_t other = offsets_[conflict.other];
    if (other + conflict.above > 0) {
      forbidden_.emplace_back(other + conflict.below, other + conflict.above);
    }
  }
  std::sort(forbidden_.begin(), forbidden_.end());
  const std::int64_t alignment = records_[record].alignment;
  std::int64_t lowest = 0;
  for (const auto& [below, above] : forbidden_) {
    if (lowest <= below) break;
    lowest = std::max(lowest, divide_up(above, alignment) * alignment);
  }
  return lowest;
}

void StairSearch::keep_if_lower(const std::vector<std::int64_t>& offsets) {
  std::int64_t height = 0;
  for (std::size_t record = 0; record < records_.size(); ++record) {
    height = std::max(height, offsets[record] + records_[record].size);
  }
  if (height >= height_) return;
  height_ = height;
  best_ = offsets;
}

void StairSearch::run(std::int64_t max_work, const ShouldStop& should_stop) {
  work_ = 0;
  max_work_ = max_work;
  std::int64_t low = lower_bound_;  // nothing below is asked for
  int vain = 0;
  while (height_ > lower_bound_ && work_ < max_work && vain < kVainAttempts && !should_stop()) {
    // The bound itself comes first, then the middle of what is left.
    const std::int64_t capacity = low == lower_bound_ && vain == 0 ? low : (low + height_) / 2;
    // Every other attempt begins elsewhere than at the best plan.
    const bool is_elsewhere = vain % 2 == 1;
    begin_at(capacity, is_elsewhere ? orders_[vain / 2 % orders_.size()] : order_of_best());
    const std::int64_t before = height_;
    if (reach(should_stop) && height_ < before) {
      vain = 0;
      if (height_ <= low) low = lower_bound_;
      continue;
    }
    ++vain;
    const bool is_narrow = height_ - capacity <= std::max<std::int64_t>(1, lower_bound_ / kFine);
    low = is_narrow ? lower_bound_ : capacity + 1;
  }
}

std::vector<int> StairSearch::order_of_best() const {
  std::vector<int> order(records_.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return best_[a] < best_[b]; });
  return order;
}

// Drops the records in this order; what does not fit waits.
void StairSearch::begin_at(std::int64_t capacity, const std::vector<int>& order) {
  capacity_ = capacity;
  waiting_.clear();
  for (std::int64_t& weight : weights_) weight = (weight + 1) / 2;
  place_fixed();
  for (const int record : order) {
    if (is_placed_[record] != 0) continue;
    const std::int64_t lowest = lowest_place(record);
    if (lowest + records_[record].size > capacity) {
      waiting_.push_back(record);
    } else {
      offsets_[record] = lowest;
      is_placed_[record] = 1;
    }
  }
}

// Puts records that wait until none does; keeps the plan and what dropping its records makes.
bool StairSearch::reach(const ShouldStop& should_stop) {
  const std::int64_t max_nodes = static_cast<std::int64_t>(records_.size()) + kNodesBesides;
  for (std::int64_t node = 0; !waiting_.empty(); ++node) {
    if (node >= max_nodes || work_ >= max_work_) return false;
    if (node % kNodesBetweenPolls == 0 && should_stop()) return false;
    const std::size_t turn = random_() % waiting_.size();
    const int record = waiting_[turn];
    const std::int64_t displaced = find_places(record);
    if (displaced >= kImmovable) return false;
    waiting_[turn] = waiting_.back();
    waiting_.pop_back();
    // Half of the time as low as may be, for that leaves the most room above.
    const std::vector<std::int64_t>& places = cheapest_.places();
    const std::size_t chosen = random_() % 2 == 0 ? 0 : random_() % places.size();
    put(record, places[chosen] * records_[record].alignment);
    if (displaced == 0) continue;
    ++weights_[record];
    if (node < max_nodes / 2) continue;
    for (int shifts = 0; shifts < kShifts; ++shifts) shift_neighbour(record);
  }
  keep_if_lower(offsets_);
  const std::vector<int> order = order_of_best();
  begin_at(std::numeric_limits<std::int64_t>::max(), order);
  keep_if_lower(offsets_);
  return true;
}

// Puts a record there. What is in its way has to wait.
void StairSearch::put(int record, std::int64_t offset) {
  for (const Conflict& conflict : conflicts_[record]) {
    if (!is_placed_[conflict.other]) continue;
    const std::int64_t distance = offset - offsets_[conflict.other];
    if (distance <= conflict.below || distance >= conflict.above) continue;
    is_placed_[conflict.other] = 0;
    waiting_.push_back(conflict.other);
  }
  offsets_[record] = offset;
  is_placed_[record] = 1;
}

// Moves a record beside this one to somewhere else that is free, so that the same does not
// happen over and over.
void StairSearch::shift_neighbour(int record) {
  if (conflicts_[record].empty()) return;
  const int other = conflicts_[record][random_() % conflicts_[record].size()].other;
  if (!is_placed_[other]) return;
  is_placed_[other] = 0;
  find_places(other);
  const std::vector<std::int64_t>& places = cheapest_.places();
  put(other, places[random_() % places.size()] * records_[other].alignment);
}

std::int64_t StairSearch::find_places(int record) {
  const RigidRecord& own = records_[record];
  const std::int64_t highest = capacity_ - own.size;
  if (highest < std::max<std::int64_t>(own.fixed, 0)) return kImmovable;
  const std::int64_t first = own.fixed >= 0 ? own.fixed / own.alignment : 0;
  const std::int64_t last = own.fixed >= 0 ? first : highest / own.alignment;
  work_ += static_cast<std::int64_t>(conflicts_[record].size());
  cheapest_.begin(first, last);
  for (const Conflict& conflict : conflicts_[record]) {
    if (!is_placed_[conflict.other]) continue;
    const std::int64_t other = offsets_[conflict.other];
    const std::int64_t weight =
        records_[conflict.other].fixed >= 0 ? kImmovable : weights_[conflict.other];
    cheapest_.forbid(divide_down(other + conflict.below, own.alignment),
                     divide_up(other + conflict.above, own.alignment), weight);
  }
  return cheapest_.find();
}

}  // namespace arenite
