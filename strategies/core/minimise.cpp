#include "minimise.hpp"

#include <algorithm>
#include <numeric>
#include <random>

namespace arenite {
namespace {

constexpr int kFixedOrders = 3;
constexpr int kRoundsAtTheBound = 7;

}  // namespace

Minimiser::Minimiser(Sections sections, BestPlan start, std::uint64_t seed,
                     std::int64_t max_nodes)
    : sections_(std::move(sections)),
      seed_(seed),
      nodes_left_(max_nodes),
      unit_(0),
      best_(std::move(start)) {
  for (const std::int64_t size : sections_.sizes) unit_ = std::gcd(unit_, size);
  for (const std::int64_t alignment : sections_.alignments) unit_ = std::gcd(unit_, alignment);
  // Alignments of 1 say nothing of sizes that are all multiples of something larger.
  if (std::all_of(sections_.alignments.begin(), sections_.alignments.end(),
                  [](std::int64_t alignment) { return alignment == 1; })) {
    unit_ = 0;
    for (const std::int64_t size : sections_.sizes) unit_ = std::gcd(unit_, size);
  }
  unit_ = std::max<std::int64_t>(unit_, 1);
}

BestPlan Minimiser::best() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return best_;
}

bool Minimiser::is_done() const {
  return stop_ || nodes_left_ <= 0 || best_.height <= best_.lower_bound;
}

void Minimiser::run() {
  std::int64_t max_nodes = 2 * static_cast<std::int64_t>(sections_.num_records());
  for (int round = 0; !is_done(); ++round, max_nodes *= 2) {
    const int num_orders = kFixedOrders + std::min(round, 5);
    for (int order = 0; order < num_orders && !is_done(); ++order) {
      for (const std::int64_t capacity : ladder(round)) {
        // The ladder was made before this round's successes and refutations.
        if (is_done()) break;
        if (capacity < best_.lower_bound || capacity >= best_.height) continue;
        attempt(capacity, ranking(order, round), max_nodes);
      }
    }
  }
}

// Returns the capacities to try, the lowest first.
std::vector<std::int64_t> Minimiser::ladder(int round) const {
  const std::int64_t gap = best_.height - best_.lower_bound;
  std::vector<std::int64_t> capacities{best_.lower_bound};
  if (round >= kRoundsAtTheBound) {
    for (const int part : {32, 16, 8, 4, 2}) {
      capacities.push_back(best_.lower_bound + gap / part / unit_ * unit_);
    }
    capacities.push_back(best_.height - unit_);
  }
  capacities.erase(std::unique(capacities.begin(), capacities.end()), capacities.end());
  return capacities;
}

void Minimiser::attempt(std::int64_t capacity, const Ranking& ranking, std::int64_t max_nodes) {
  ExactSearch search(sections_, ranking, capacity, std::min(max_nodes, nodes_left_), stop_);
  const Verdict verdict = search.run();
  nodes_left_ -= search.num_nodes();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (verdict == Verdict::kImpossible) {
    const std::int64_t next = (capacity / unit_ + 1) * unit_;
    best_.lower_bound = std::min(std::max(best_.lower_bound, next), best_.height);
  }
  if (verdict == Verdict::kFits) {
    best_.offsets = search.offsets();
    best_.height = 0;
    for (int record = 0; record < sections_.num_records(); ++record) {
      best_.height = std::max(best_.height, best_.offsets[record] + sections_.sizes[record]);
    }
  }
}

// The first orders compare load, lifetime and area one after the other, in the order that
// served best; the others mix the three, drawn at random.
Ranking Minimiser::ranking(int order, int round) const {
  constexpr double kFirst = 1e6;
  constexpr double kSecond = 1e3;
  switch (order) {
    case 0:
      return {kSecond, 1, kFirst, {}};
    case 1:
      return {kFirst, kSecond, 1, {}};
    case 2:
      return {1, kSecond, kFirst, {}};
    default:
      break;
  }
  std::mt19937_64 random(seed_ * 0x9E3779B97F4A7C15u + static_cast<std::uint64_t>(round) * 64 +
                         static_cast<std::uint64_t>(order));
  // Scaled by hand: what a standard distribution draws is not the same everywhere.
  const auto draw = [&random] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  Ranking mixture{2 * draw(), draw(), 8 * draw(), {}};
  for (int record = 0; record < sections_.num_records(); ++record) {
    mixture.factors.push_back(0.5 * draw());
  }
  return mixture;
}

}  // namespace arenite
