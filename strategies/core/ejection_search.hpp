// A plan within a capacity, by putting records where the fewest have to leave.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "cheapest_places.hpp"
#include "sections.hpp"

namespace arenite {

// Some records lie within the capacity and share no byte; the others wait. One of those that
// wait goes where what it displaces weighs least, and what it displaces waits. A record weighs
// one more for each time that it displaced others, so those that are hard to place stay where
// they are in the end. When that leads nowhere, it begins again at the plan, but keeps the
// weights.
//
// Source: guided ejection search of Nagata and Bräysy (2009), there of vehicles' routes.
class EjectionSearch {
 public:
  using ShouldStop = std::function<bool()>;

  // `sections` must outlive the search.
  explicit EjectionSearch(const Sections& sections);

  // Whether the pairs of records that meet are few enough to hold.
  bool is_possible() const { return !meets_.empty(); }
  // Goes on from a plan: bytes, by index among the records that the sections were made of.
  void begin_at(const std::vector<std::int64_t>& offsets, std::int64_t capacity);
  // Puts up to `max_nodes` records; returns whether all lie within the capacity.
  bool run(std::int64_t max_nodes, std::mt19937_64& random, const ShouldStop& should_stop);

  // Units.
  std::int64_t offset(int record) const { return spots_[record].offset; }
  // Of the last run.
  std::int64_t num_nodes() const { return num_nodes_; }

 private:
  void restart();
  void put(int record, std::int64_t offset);
  void shift_neighbour(int record, std::mt19937_64& random);
  std::int64_t find_places(int record);

  // What others ask of a record, units: together, for it is read out of order.
  struct Spot {
    std::int64_t offset;
    std::int64_t size;
    std::int64_t weight;
    bool is_placed;
  };

  const Sections& sections_;
  std::vector<std::vector<int>> meets_;  // by record
  std::vector<int> start_order_;         // of the plan it began at, from the bottom up
  std::vector<std::int64_t> limits_;     // by record: the highest offset it may have
  std::vector<Spot> spots_;              // by record
  std::vector<int> waiting_;
  CheapestPlaces cheapest_;
  std::vector<std::int64_t> places_;  // that displace the least
  std::int64_t nodes_since_start_ = 0;
  std::int64_t num_nodes_ = 0;
};

}  // namespace arenite
