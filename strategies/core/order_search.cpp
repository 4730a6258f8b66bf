#include "order_search.hpp"

#include <algorithm>
#include <limits>
#include <unordered_map>

namespace arenite {
namespace {

// A set of executed operators, one bit each, with what follows from it.
struct State {
  std::int64_t load;    // bytes live between two steps; follows from the set
  std::int64_t peak;    // least over the orders seen
  std::int64_t parent;  // index in the level before
  int operator_index;   // executed last
};

// All sets of one size. Their words lie side by side in one array.
struct Level {
  std::vector<State> states;
  std::vector<std::uint64_t> words;
};

class Search {
 public:
  explicit Search(const OrderProblem& problem)
      : problem_(problem),
        num_operators_(static_cast<int>(problem.predecessors.size())),
        num_words_((problem.predecessors.size() + 63) / 64),
        written_(num_operators_),
        touched_(num_operators_),
        is_contested_(problem.storages.size(), 0) {
    for (std::size_t index = 0; index < problem.storages.size(); ++index) {
      const OrderProblem::Storage& storage = problem.storages[index];
      if (storage.writer >= 0) written_[storage.writer].push_back(static_cast<int>(index));
      for (const int toucher : storage.touchers) {
        touched_[toucher].push_back(static_cast<int>(index));
      }
    }
    for (const std::vector<int>& preferred : problem.replaceable) {
      std::int64_t largest_after = 0;
      for (auto storage = preferred.rbegin(); storage != preferred.rend(); ++storage) {
        const std::int64_t size = problem.storages[*storage].size;
        if (size < largest_after) is_contested_[*storage] = 1;
        largest_after = std::max(largest_after, size);
      }
    }
    std::uint64_t seed = 0x9E3779B97F4A7C15u;
    for (int index = 0; index < num_operators_; ++index) keys_.push_back(next_key(seed));
  }

  struct Step {
    std::int64_t during;  // load while the operator runs
    std::int64_t after;   // load when it is done
  };

  // What executing `operator_index` does to a set whose load is `load`.
  Step step(const std::uint64_t* set, std::int64_t load, int operator_index) const {
    std::int64_t made = 0;
    std::int64_t freed = 0;
    for (const int storage : written_[operator_index]) made += problem_.storages[storage].size;
    for (const int storage : touched_[operator_index]) {
      if (dies(set, storage, operator_index)) freed += problem_.storages[storage].size;
    }
    std::int64_t during = load + made + problem_.scratch[operator_index];
    for (const int storage : problem_.replaceable[operator_index]) {
      if (dies(set, storage, operator_index)) {
        during -= problem_.storages[storage].size;
        break;
      }
    }
    return {during, load + made - freed};
  }

  bool is_ready(const std::uint64_t* set, int operator_index) const {
    if (contains(set, operator_index)) return false;
    for (const int before : problem_.predecessors[operator_index]) {
      if (!contains(set, before)) return false;
    }
    return true;
  }

  std::int64_t initial_load() const {
    std::int64_t load = 0;
    for (const OrderProblem::Storage& storage : problem_.storages) {
      if (storage.writer < 0 && (storage.kept || !storage.touchers.empty())) load += storage.size;
    }
    return load;
  }

  Level first_level() const {
    Level level;
    const std::int64_t load = initial_load();
    level.states.push_back({load, load, -1, -1});
    level.words.assign(num_words_, 0);
    return level;
  }

  // Expands every set of `level`; keeps sets whose peak stays below `bound`.
  Level expand(const Level& level, std::int64_t bound) const {
    Level next;
    std::unordered_multimap<std::uint64_t, std::int64_t> seen;
    std::vector<std::uint64_t> child(num_words_);
    std::vector<int> ready;
    for (std::size_t index = 0; index < level.states.size(); ++index) {
      const State& state = level.states[index];
      const std::uint64_t* set = &level.words[index * num_words_];
      find_ready(set, ready);
      const int safe = safe_move(set, state, ready);
      if (safe >= 0) ready.assign(1, safe);
      for (const int operator_index : ready) {
        const Step step = this->step(set, state.load, operator_index);
        const std::int64_t peak = std::max(state.peak, step.during);
        if (peak >= bound) continue;
        std::copy(set, set + num_words_, child.begin());
        child[operator_index / 64] |= std::uint64_t{1} << (operator_index % 64);
        add(next, seen, child,
            {step.after, peak, static_cast<std::int64_t>(index), operator_index});
      }
    }
    return next;
  }

  int num_operators() const { return num_operators_; }
  std::size_t num_words() const { return num_words_; }

 private:
  static std::uint64_t next_key(std::uint64_t& seed) {  // splitmix64
    std::uint64_t value = (seed += 0x9E3779B97F4A7C15u);
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
    return value ^ (value >> 31);
  }

  static bool contains(const std::uint64_t* set, int operator_index) {
    return (set[operator_index / 64] >> (operator_index % 64)) & 1;
  }

  // Whether nobody but `operator_index` and the executed ones needs the storage.
  bool dies(const std::uint64_t* set, int storage, int operator_index) const {
    if (problem_.storages[storage].kept) return false;
    for (const int toucher : problem_.storages[storage].touchers) {
      if (toucher != operator_index && !contains(set, toucher)) return false;
    }
    return true;
  }

  void find_ready(const std::uint64_t* set, std::vector<int>& ready) const {
    ready.clear();
    for (int index = 0; index < num_operators_; ++index) {
      if (is_ready(set, index)) ready.push_back(index);
    }
  }

  // An operator that can run now without harm to any order: it raises neither the peak nor
  // the load. Moving it here from anywhere later lowers the load of the steps between. It
  // must not let one of them be the last to need a storage and replace it for a larger one.
  int safe_move(const std::uint64_t* set, const State& state, const std::vector<int>& ready) const {
    for (const int operator_index : ready) {
      const Step step = this->step(set, state.load, operator_index);
      if (step.during > state.peak || step.after > state.load) continue;
      const std::vector<int>& touched = touched_[operator_index];
      if (std::none_of(touched.begin(), touched.end(), [&](int storage) {
            return is_contested_[storage] && !dies(set, storage, operator_index);
          })) {
        return operator_index;
      }
    }
    return -1;
  }

  std::uint64_t hash(const std::vector<std::uint64_t>& set) const {
    std::uint64_t value = 0;
    for (std::size_t word = 0; word < num_words_; ++word) {
      for (std::uint64_t bits = set[word]; bits != 0; bits &= bits - 1) {
        value ^= keys_[word * 64 + static_cast<std::size_t>(__builtin_ctzll(bits))];
      }
    }
    return value;
  }

  void add(Level& level, std::unordered_multimap<std::uint64_t, std::int64_t>& seen,
           const std::vector<std::uint64_t>& set, const State& state) const {
    const std::uint64_t key = hash(set);
    const auto [begin, end] = seen.equal_range(key);
    for (auto entry = begin; entry != end; ++entry) {
      const std::size_t index = static_cast<std::size_t>(entry->second);
      if (std::equal(set.begin(), set.end(), level.words.begin() + index * num_words_)) {
        if (state.peak < level.states[index].peak) level.states[index] = state;
        return;
      }
    }
    seen.emplace(key, static_cast<std::int64_t>(level.states.size()));
    level.states.push_back(state);
    level.words.insert(level.words.end(), set.begin(), set.end());
  }

  const OrderProblem& problem_;
  int num_operators_;
  std::size_t num_words_;
  std::vector<std::vector<int>> written_;  // by operator: storages it makes
  std::vector<std::vector<int>> touched_;  // by operator: storages it reads or writes
  std::vector<char> is_contested_;         // by storage: somewhere preferred to a larger one
  std::vector<std::uint64_t> keys_;
};

// Keeps the `width` states with the least (peak, load), in that order.
void narrow(Level& level, std::size_t width, std::size_t num_words) {
  if (level.states.size() <= width) return;
  std::vector<std::size_t> indices(level.states.size());
  for (std::size_t index = 0; index < indices.size(); ++index) indices[index] = index;
  const auto better = [&level](std::size_t a, std::size_t b) {
    const State& x = level.states[a];
    const State& y = level.states[b];
    if (x.peak != y.peak) return x.peak < y.peak;
    if (x.load != y.load) return x.load < y.load;
    return a < b;
  };
  std::nth_element(indices.begin(), indices.begin() + static_cast<std::ptrdiff_t>(width),
                   indices.end(), better);
  indices.resize(width);
  std::sort(indices.begin(), indices.end(), better);
  Level kept;
  for (const std::size_t index : indices) {
    kept.states.push_back(level.states[index]);
    const auto word = level.words.begin() + static_cast<std::ptrdiff_t>(index * num_words);
    kept.words.insert(kept.words.end(), word, word + static_cast<std::ptrdiff_t>(num_words));
  }
  level = std::move(kept);
}

// Follows the parents from the last level, whose only set holds every operator.
OrderResult trace(const std::vector<std::vector<State>>& levels, OrderOutcome outcome) {
  OrderResult result;
  result.peak = levels.back().front().peak;
  result.outcome = outcome;
  std::int64_t index = 0;
  for (std::size_t level = levels.size() - 1; level > 0; --level) {
    const State& state = levels[level][static_cast<std::size_t>(index)];
    result.order.push_back(state.operator_index);
    index = state.parent;
  }
  std::reverse(result.order.begin(), result.order.end());
  return result;
}

}  // namespace

std::int64_t peak_of(const OrderProblem& problem, const std::vector<int>& order) {
  const Search search(problem);
  std::vector<std::uint64_t> set(search.num_words(), 0);
  std::int64_t load = search.initial_load();
  std::int64_t peak = load;
  for (const int operator_index : order) {
    const Search::Step step = search.step(set.data(), load, operator_index);
    peak = std::max(peak, step.during);
    load = step.after;
    set[static_cast<std::size_t>(operator_index) / 64] |= std::uint64_t{1} << (operator_index % 64);
  }
  return peak;
}

std::int64_t least_peak(const OrderProblem& problem) {
  std::int64_t least = Search(problem).initial_load();
  std::vector<std::int64_t> working_sets = problem.scratch;
  for (const OrderProblem::Storage& storage : problem.storages) {
    for (const int toucher : storage.touchers) working_sets[toucher] += storage.size;
  }
  for (std::size_t index = 0; index < working_sets.size(); ++index) {
    std::int64_t spared = 0;
    for (const int storage : problem.replaceable[index]) {
      spared = std::max(spared, problem.storages[static_cast<std::size_t>(storage)].size);
    }
    least = std::max(least, working_sets[index] - spared);
  }
  return least;
}

OrderResult beam_search(const OrderProblem& problem, int width, const ShouldStop& should_stop) {
  const Search search(problem);
  std::vector<std::vector<State>> levels;
  Level level = search.first_level();
  bool narrowed = false;
  for (int step = 0; step < search.num_operators(); ++step) {
    if (should_stop()) width = 1;  // the quickest way to an order
    levels.push_back(level.states);
    level = search.expand(level, std::numeric_limits<std::int64_t>::max());
    narrowed = narrowed || level.states.size() > static_cast<std::size_t>(width);
    narrow(level, static_cast<std::size_t>(width), search.num_words());
  }
  levels.push_back(level.states);
  OrderResult result = trace(levels, OrderOutcome::kLimit);
  if (!narrowed || result.peak == least_peak(problem)) result.outcome = OrderOutcome::kOptimal;
  return result;
}

OrderResult exact_search(const OrderProblem& problem, const OrderResult& incumbent,
                         std::int64_t max_states, const ShouldStop& should_stop) {
  const Search search(problem);
  OrderResult result = incumbent;
  std::vector<std::vector<State>> levels;
  Level level = search.first_level();
  std::int64_t num_states = 0;
  for (int step = 0; step < search.num_operators(); ++step) {
    if (should_stop()) {
      result.outcome = OrderOutcome::kStopped;
      return result;
    }
    levels.push_back(level.states);
    level = search.expand(level, incumbent.peak);
    if (level.states.empty()) {
      result.outcome = OrderOutcome::kOptimal;
      return result;
    }
    num_states += static_cast<std::int64_t>(level.states.size());
    if (num_states > max_states) {
      result.outcome = OrderOutcome::kLimit;
      return result;
    }
  }
  levels.push_back(level.states);
  return trace(levels, OrderOutcome::kOptimal);
}

}  // namespace arenite
