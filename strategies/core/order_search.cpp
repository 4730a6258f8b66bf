#include "order_search.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

#include "state_table.hpp"

namespace arenite {
namespace {

constexpr std::int64_t kNoBound = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kChildrenPerSet = 64;        // of a beam: more are narrowed at once, so
constexpr std::int64_t kFewestChildren = 1 << 16;   // that no step takes long
constexpr std::int64_t kWorkBetweenPolls = 50'000;  // some 10 ns each: well below a millisecond

// Asks whether to stop whenever so much work is done, and stops when none is left.
class Poll {
 public:
  explicit Poll(const ShouldStop& should_stop, std::int64_t most_work = kNoBound)
      : should_stop_(should_stop), work_left_(most_work) {}

  bool is_stopped() const { return is_stopped_; }
  bool ask() {
    work_left_ -= work_;
    work_ = 0;
    is_stopped_ = is_stopped_ || work_left_ <= 0 || should_stop_();
    return is_stopped_;
  }
  bool ask_after(std::int64_t work) {
    work_ += work;
    return is_stopped_ || (work_ >= kWorkBetweenPolls && ask());
  }

 private:
  const ShouldStop& should_stop_;
  std::int64_t work_left_;
  std::int64_t work_ = 0;
  bool is_stopped_ = false;
};

// Makes the sets that can follow those of a table.
class Expansion {
 public:
  explicit Expansion(const OrderProblem& problem)
      : steps_(problem), child_(steps_.num_words()), keys_(problem.predecessors.size()) {
    std::uint64_t seed = 0;
    for (std::uint64_t& key : keys_) key = next_key(seed);
  }

  const OrderSteps& steps() const { return steps_; }

  StateTable first_table() const {
    StateTable table(steps_.num_words());
    const std::int64_t load = steps_.initial_load();
    table.add(std::vector<std::uint64_t>(steps_.num_words(), 0).data(), {load, load, 0, {0, -1}});
    return table;
  }

  // Adds to `next` the sets that follow set `index` of `table` with a peak below `bound`.
  // Returns false as soon as `go_on`, told the work of each, does.
  template <typename GoOn>
  bool expand(const StateTable& table, std::size_t index, std::int64_t bound, StateTable& next,
              GoOn go_on) {
    const State& state = table.state(index);
    const std::uint64_t* const set = table.set(index);
    steps_.find_ready(set, ready_);
    step_all(set, state);
    const auto num_words = static_cast<std::int64_t>(steps_.num_words());
    if (!go_on(steps_.num_operators() / 8 + 1)) return false;
    for (std::size_t i = 0; i < ready_.size(); ++i) {
      const std::int64_t peak = std::max(state.peak, results_[i].during);
      if (peak < bound) {
        std::copy(set, set + num_words, child_.begin());
        insert(child_.data(), ready_[i]);
        next.add(child_.data(), {results_[i].after,
                                 peak,
                                 state.key ^ keys_[ready_[i]],
                                 {static_cast<std::uint32_t>(index), ready_[i]}});
      }
      if (!go_on(num_words + 16)) return false;
    }
    return true;
  }

 private:
  static std::uint64_t next_key(std::uint64_t& seed) {  // splitmix64
    std::uint64_t value = (seed += 0x9E3779B97F4A7C15u);
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
    return value ^ (value >> 31);
  }

  // Finds what each ready operator would do. One that can run now without harm to any order
  // is the only one left.
  void step_all(const std::uint64_t* set, const State& state) {
    results_.clear();
    for (const int operator_index : ready_) {
      const OrderSteps::Step step = steps_.step(set, state.load, operator_index);
      if (step.during <= state.peak && step.after <= state.load &&
          steps_.is_harmless(set, operator_index)) {
        ready_.assign(1, operator_index);
        results_.assign(1, step);
        return;
      }
      results_.push_back(step);
    }
  }

  OrderSteps steps_;
  std::vector<std::uint64_t> child_;
  std::vector<std::uint64_t> keys_;  // by operator; a set's key is the exclusive or of them
  std::vector<int> ready_;
  std::vector<OrderSteps::Step> results_;  // of those that are ready
};

// Follows the moves back from a set of the last table: that which holds every operator, or another.
OrderResult trace(const std::vector<std::vector<Move>>& moves, std::int64_t peak,
                  OrderOutcome outcome, std::size_t index = 0) {
  OrderResult result;
  result.peak = peak;
  result.outcome = outcome;
  for (std::size_t step = moves.size() - 1; step > 0; --step) {
    const Move& move = moves[step][index];
    result.order.push_back(move.operator_index);
    index = move.parent;
  }
  std::reverse(result.order.begin(), result.order.end());
  return result;
}

// Runs the operators that an order lacks after it, of those that may the one with the lowest index
// first, or the one that became ready last.
std::vector<int> completed(const OrderProblem& problem, std::vector<int> order, bool newest_first) {
  const std::size_t num_operators = problem.predecessors.size();
  std::vector<std::vector<int>> followers(num_operators);
  std::vector<int> missing(num_operators);
  std::vector<char> is_done(num_operators, 0);
  std::set<std::pair<std::int64_t, int>> ready;  // those with the lowest first number run first
  std::int64_t turn = 0;
  const auto make_ready = [&](int index) { ready.insert({newest_first ? --turn : index, index}); };
  for (const int index : order) is_done[index] = 1;
  for (std::size_t index = num_operators; index-- > 0;) {
    if (is_done[index]) continue;
    for (const int before : problem.predecessors[index]) {
      if (is_done[before]) continue;
      followers[before].push_back(static_cast<int>(index));
      ++missing[index];
    }
    if (missing[index] == 0) make_ready(static_cast<int>(index));
  }
  while (!ready.empty()) {
    const int next = ready.begin()->second;
    ready.erase(ready.begin());
    order.push_back(next);
    for (const int follower : followers[next]) {
      if (--missing[follower] == 0) make_ready(follower);
    }
  }
  return order;
}

// Returns the better of two orders that go on from the best set of a table.
OrderResult cut_short(const OrderProblem& problem, const StateTable& table,
                      const std::vector<std::vector<Move>>& moves) {
  std::size_t best = 0;
  for (std::size_t index = 1; index < table.size(); ++index) {
    const State& one = table.state(index);
    const State& other = table.state(best);
    if (std::tie(one.peak, one.load) < std::tie(other.peak, other.load)) best = index;
  }
  OrderResult result = trace(moves, 0, OrderOutcome::kStopped, best);
  const std::vector<int> begun = std::move(result.order);
  result.order = completed(problem, begun, false);
  result.peak = peak_of(problem, result.order);
  std::vector<int> newest = completed(problem, begun, true);
  const std::int64_t newest_peak = peak_of(problem, newest);
  if (newest_peak < result.peak) {
    result.order = std::move(newest);
    result.peak = newest_peak;
  }
  if (result.peak == least_peak(problem)) result.outcome = OrderOutcome::kOptimal;
  return result;
}

}  // namespace

OrderResult beam_search(const OrderProblem& problem, int width, std::int64_t most_bytes,
                        std::int64_t most_work, const ShouldStop& should_stop) {
  Expansion expansion(problem);
  const std::int64_t num_steps = expansion.steps().num_operators();
  const std::int64_t per_state = StateTable::bytes_per_state(expansion.steps().num_words());
  const auto per_move = static_cast<std::int64_t>(sizeof(Move));
  // For each set kept: its move at every step, its place in two tables and, while the second is
  // narrowed, in a third; and room for one set more beside it.
  std::int64_t kept =
      std::max<std::int64_t>(1, most_bytes / (num_steps * per_move + 4 * per_state));
  kept = std::min<std::int64_t>(kept, width);
  // A table that grows beyond this is narrowed before it is complete.
  const auto most_states = static_cast<std::size_t>(
      std::clamp((most_bytes - kept * (num_steps * per_move + 2 * per_state)) / per_state, 2 * kept,
                 std::max(kChildrenPerSet * kept, kFewestChildren)));
  Poll poll(should_stop, most_work);
  poll.ask();
  std::vector<std::vector<Move>> moves;
  StateTable table = expansion.first_table();
  bool is_narrowed = false;
  for (std::int64_t step = 0; step < num_steps; ++step) {
    moves.push_back(table.moves());
    StateTable next(expansion.steps().num_words());
    for (std::size_t index = 0; index < table.size() && !poll.is_stopped(); ++index) {
      expansion.expand(table, index, kNoBound, next, [&](std::int64_t work) {
        if (next.size() >= most_states) {
          next = next.lowest(static_cast<std::size_t>(kept));
          is_narrowed = true;
        }
        return !poll.ask_after(work);
      });
    }
    if (poll.is_stopped()) return cut_short(problem, table, moves);
    is_narrowed = is_narrowed || next.size() > static_cast<std::size_t>(kept);
    if (next.size() > static_cast<std::size_t>(kept)) {
      next = next.lowest(static_cast<std::size_t>(kept));
    }
    table = std::move(next);
  }
  moves.push_back(table.moves());
  OrderResult result = trace(moves, table.state(0).peak, OrderOutcome::kLimit);
  if (!is_narrowed || result.peak == least_peak(problem)) {
    result.outcome = OrderOutcome::kOptimal;
  }
  return result;
}

OrderResult exact_search(const OrderProblem& problem, const OrderResult& incumbent,
                         const OrderLimits& limits, const ShouldStop& should_stop) {
  Expansion expansion(problem);
  const std::int64_t per_state = StateTable::bytes_per_state(expansion.steps().num_words());
  const auto per_move = static_cast<std::int64_t>(sizeof(Move));
  Poll poll(should_stop);
  OrderResult result = incumbent;
  if (poll.ask()) {
    result.outcome = OrderOutcome::kStopped;
    return result;
  }
  std::vector<std::vector<Move>> moves;
  StateTable table = expansion.first_table();
  std::int64_t num_states = 0;  // without those of the table that grows
  std::int64_t num_bytes = 0;   // likewise
  for (int step = 0; step < expansion.steps().num_operators(); ++step) {
    moves.push_back(table.moves());
    num_bytes = num_states * per_move + static_cast<std::int64_t>(table.size()) * per_state;
    const std::int64_t most_next =
        std::min({limits.most_states - num_states, (limits.most_bytes - num_bytes) / per_state,
                  static_cast<std::int64_t>(StateTable::kMostStates)});
    StateTable next(expansion.steps().num_words());
    for (std::size_t index = 0; index < table.size(); ++index) {
      const bool goes_on =
          expansion.expand(table, index, incumbent.peak, next, [&](std::int64_t work) {
            return static_cast<std::int64_t>(next.size()) <= most_next && !poll.ask_after(work);
          });
      if (goes_on) continue;
      result.outcome = poll.is_stopped() ? OrderOutcome::kStopped : OrderOutcome::kLimit;
      return result;
    }
    if (next.size() == 0) {
      result.outcome = OrderOutcome::kOptimal;
      return result;
    }
    num_states += static_cast<std::int64_t>(next.size());
    table = std::move(next);
  }
  moves.push_back(table.moves());
  return trace(moves, table.state(0).peak, OrderOutcome::kOptimal);
}

}  // namespace arenite
