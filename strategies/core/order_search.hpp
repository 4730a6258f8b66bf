// Operator orders with a low peak load: beam search, and an exact search over downsets.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace arenite {

// What the operators of a graph do to memory. Operators and storages are indices.
struct OrderProblem {
  struct Storage {
    std::int64_t size;
    int writer;                 // the operator that makes it, or -1: there from the start
    std::vector<int> touchers;  // operators that read or write it, the writer included
    bool kept;                  // needed after the last step
  };

  std::vector<Storage> storages;
  std::vector<std::vector<int>> predecessors;  // by operator
  std::vector<std::int64_t> scratch;           // by operator: bytes while it runs
  // By operator: storages of which its result may take the place when they die there, in
  // order of preference. The result is the storage it writes first.
  std::vector<std::vector<int>> replaceable;
};

enum class OrderOutcome {
  kOptimal,  // no order has a lower peak
  kLimit,    // the states ran out; the order is the best found
  kStopped,  // told to stop; the order is the best found
};

struct OrderResult {
  std::vector<int> order;
  std::int64_t peak = 0;
  OrderOutcome outcome = OrderOutcome::kLimit;
};

// Returns the peak load when the operators run in `order`, a topological order.
std::int64_t peak_of(const OrderProblem& problem, const std::vector<int>& order);

// Returns the largest load of an operator on its own: no order goes below.
std::int64_t least_peak(const OrderProblem& problem);

using ShouldStop = std::function<bool()>;

// Keeps the `width` sets of executed operators with the least (peak, load) at each step.
// O(n * width * ready operators) time.
OrderResult beam_search(const OrderProblem& problem, int width, const ShouldStop& should_stop);

// Visits every set of executed operators that some order with a peak below that of
// `incumbent` passes through, at most `max_states` of them.
OrderResult exact_search(const OrderProblem& problem, const OrderResult& incumbent,
                         std::int64_t max_states, const ShouldStop& should_stop);

}  // namespace arenite
