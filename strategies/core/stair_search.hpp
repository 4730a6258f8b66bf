// Low plans of records with outlines: dropped in several orders, then moved about.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "cheapest_places.hpp"
#include "rigid_record.hpp"

namespace arenite {

// The records are dropped one after the other, each as low as those before it leave. Then a
// capacity between the bound and the best plan is asked for: of the records that do not fit,
// one at a time goes where what it displaces weighs least, and what it displaces waits. A
// record weighs one more for each time that it displaced others, and half of that in the next
// attempt.
//
// Source: guided ejection search of Nagata and Bräysy (2009), there of vehicles' routes.
class StairSearch {
 public:
  using ShouldStop = std::function<bool()>;

  StairSearch(std::vector<RigidRecord> records, std::int64_t lower_bound, std::uint64_t seed);

  // Drops the records in this order, those that are fixed before all others, and keeps the
  // plan if it is the lowest so far.
  void drop(const std::vector<int>& order);
  // Looks at up to `max_work` conflicts; ends when the bound is reached, or when attempts are in
  // vain. Needs a plan.
  void run(std::int64_t max_work, const ShouldStop& should_stop);

  const std::vector<std::int64_t>& offsets() const { return best_; }
  std::int64_t height() const { return height_; }

 private:
  bool reach(const ShouldStop& should_stop);
  std::vector<int> order_of_best() const;
  void begin_at(std::int64_t capacity, const std::vector<int>& order);
  void place_fixed();
  void put(int record, std::int64_t offset);
  void shift_neighbour(int record);
  std::int64_t find_places(int record);
  std::int64_t lowest_place(int record);
  void keep_if_lower(const std::vector<std::int64_t>& offsets);

  std::vector<RigidRecord> records_;
  std::vector<std::vector<Conflict>> conflicts_;
  std::int64_t lower_bound_;
  std::mt19937_64 random_;
  std::vector<std::vector<int>> orders_;  // in which records were dropped
  std::vector<std::int64_t> best_;
  std::int64_t height_;

  // Of the plan in the making.
  std::int64_t capacity_ = 0;
  std::vector<std::int64_t> offsets_;
  std::vector<char> is_placed_;
  std::vector<int> waiting_;
  std::vector<std::int64_t> weights_;
  CheapestPlaces cheapest_;
  std::vector<std::pair<std::int64_t, std::int64_t>> forbidden_;
  std::int64_t work_ = 0;
  std::int64_t max_work_ = 0;
};

}  // namespace arenite
