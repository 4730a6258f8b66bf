// Operator orders with a low peak load: beam search, and an exact search over downsets.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "order_problem.hpp"

namespace arenite {

enum class OrderOutcome {
  kOptimal,  // no order has a lower peak
  kLimit,    // the states or the memory ran out; the order is the best found
  kStopped,  // told to stop; the order is the best found
};

struct OrderResult {
  std::vector<int> order;
  std::int64_t peak = 0;
  OrderOutcome outcome = OrderOutcome::kLimit;
};

using ShouldStop = std::function<bool()>;

// How much a search may hold. Counted, not measured, so that it ends the same everywhere.
struct OrderLimits {
  std::int64_t most_states;  // sets visited in all
  std::int64_t most_bytes;   // of the tables of sets
};

// Keeps the `width` sets of executed operators with the least (peak, load) at each step, fewer
// where `most_bytes` has no room for so many. Told to stop, or after `most_work` (of a few
// nanoseconds each, counted as `most_states` is), it runs what is left after the best set as it
// comes: by index, or what became ready last first. O(n * width * ready operators) time.
OrderResult beam_search(const OrderProblem& problem, int width, std::int64_t most_bytes,
                        std::int64_t most_work, const ShouldStop& should_stop);

// Visits every set of executed operators that some order with a peak below that of
// `incumbent` passes through. Where the limits or `should_stop` end it, the incumbent stays.
OrderResult exact_search(const OrderProblem& problem, const OrderResult& incumbent,
                         const OrderLimits& limits, const ShouldStop& should_stop);

}  // namespace arenite
