// What the operators of a graph do to memory, and the load of an order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace arenite {

// Operators and storages are indices.
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

// Returns the peak load when the operators run in `order`, a topological order.
std::int64_t peak_of(const OrderProblem& problem, const std::vector<int>& order);

// Returns the largest load of an operator on its own: no order goes below.
std::int64_t least_peak(const OrderProblem& problem);

// A set of executed operators is a row of words, one bit for each operator.
inline bool contains(const std::uint64_t* set, int operator_index) {
  return (set[operator_index / 64] >> (operator_index % 64)) & 1;
}
inline void insert(std::uint64_t* set, int operator_index) {
  set[operator_index / 64] |= std::uint64_t{1} << (operator_index % 64);
}

// What running one more operator does to a set of executed ones.
class OrderSteps {
 public:
  struct Step {
    std::int64_t during;  // load while the operator runs
    std::int64_t after;   // load when it is done
  };

  // `problem` must outlive it.
  explicit OrderSteps(const OrderProblem& problem);

  int num_operators() const { return static_cast<int>(problem_.predecessors.size()); }
  std::size_t num_words() const { return (problem_.predecessors.size() + 63) / 64; }
  // Load before the first step.
  std::int64_t initial_load() const;

  // The operator runs after those of `set`, whose load is `load`.
  Step step(const std::uint64_t* set, std::int64_t load, int operator_index) const;
  // Replaces `ready` by the operators that may run next, by index. Looks only at those between the
  // first that has not run and the last that needs one that has.
  void find_ready(const std::uint64_t* set, std::vector<int>& ready) const;
  // Whether an operator that would raise neither peak nor load does no harm to any order when
  // it runs now. Moving it here from anywhere later lowers the load of the steps between. It
  // must not let one of them be the last to need a storage and replace it for a larger one.
  bool is_harmless(const std::uint64_t* set, int operator_index) const;

 private:
  bool dies(const std::uint64_t* set, int storage, int operator_index) const;

  const OrderProblem& problem_;
  std::vector<std::vector<int>> written_;  // by operator: storages it makes
  std::vector<std::vector<int>> touched_;  // by operator: storages it reads or writes
  std::vector<char> is_contested_;         // by storage: somewhere preferred to a larger one
  std::vector<int> sources_;               // operators that need none before them
  std::vector<int> reach_;  // by operator: the last that needs it or one before it, or -1
};

}  // namespace arenite
