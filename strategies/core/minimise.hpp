// The lowest plan, by asking the exact search for one capacity after another.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "exact_search.hpp"

namespace arenite {

struct BestPlan {
  std::vector<std::int64_t> offsets;
  std::int64_t height = 0;
  std::int64_t lower_bound = 0;
};

// Asks for the bound first: a tight capacity prunes most. Then capacities between the bound
// and the best plan take turns, with several orders of the records, some of them random, and
// limits that double every round. Ends when height and bound meet, the nodes are used up or
// it is told to stop.
class Minimiser {
 public:
  // `start` is any valid plan; `seed` decides the random orders.
  Minimiser(Sections sections, BestPlan start, std::uint64_t seed, std::int64_t max_nodes);

  void run();
  void stop() { stop_ = true; }
  BestPlan best() const;  // from any thread

 private:
  void attempt(std::int64_t capacity, const Ranking& ranking, std::int64_t max_nodes);
  std::vector<std::int64_t> ladder(int round) const;
  Ranking ranking(int order, int round) const;
  bool is_done() const;

  const Sections sections_;
  const std::uint64_t seed_;
  std::int64_t nodes_left_;
  std::int64_t unit_;  // every height is a multiple of it
  std::atomic<bool> stop_{false};
  mutable std::mutex mutex_;
  BestPlan best_;
};

}  // namespace arenite
