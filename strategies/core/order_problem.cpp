#include "order_problem.hpp"

#include <algorithm>
#include <numeric>

namespace arenite {

OrderSteps::OrderSteps(const OrderProblem& problem)
    : problem_(problem),
      written_(problem.predecessors.size()),
      touched_(problem.predecessors.size()),
      is_contested_(problem.storages.size(), 0),
      reach_(problem.predecessors.size(), -1) {
  for (int index = 0; index < num_operators(); ++index) {
    if (problem.predecessors[index].empty()) sources_.push_back(index);
    for (const int before : problem.predecessors[index]) {
      reach_[before] = std::max(reach_[before], index);
    }
  }
  std::partial_sum(reach_.begin(), reach_.end(), reach_.begin(),
                   [](int a, int b) { return std::max(a, b); });
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
}

std::int64_t OrderSteps::initial_load() const {
  std::int64_t load = 0;
  for (const OrderProblem::Storage& storage : problem_.storages) {
    if (storage.writer < 0 && (storage.kept || !storage.touchers.empty())) load += storage.size;
  }
  return load;
}

OrderSteps::Step OrderSteps::step(const std::uint64_t* set, std::int64_t load,
                                  int operator_index) const {
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

void OrderSteps::find_ready(const std::uint64_t* set, std::vector<int>& ready) const {
  ready.clear();
  const std::uint64_t* const set_end = set + num_words();
  const auto is_full = [](std::uint64_t word) { return word == ~std::uint64_t{0}; };
  const int begin = 64 * static_cast<int>(std::find_if_not(set, set_end, is_full) - set);
  auto word = static_cast<int>(num_words());
  while (word > 0 && set[word - 1] == 0) --word;
  const int end = word == 0 ? 0 : reach_[std::min(64 * word, num_operators()) - 1] + 1;
  for (int index = begin; index < end; ++index) {
    const std::vector<int>& before = problem_.predecessors[index];
    if (!contains(set, index) && std::all_of(before.begin(), before.end(),
                                             [set](int other) { return contains(set, other); })) {
      ready.push_back(index);
    }
  }
  const int beyond = std::max(begin, end);
  for (auto source = std::lower_bound(sources_.begin(), sources_.end(), beyond);
       source != sources_.end(); ++source) {
    if (!contains(set, *source)) ready.push_back(*source);
  }
}

bool OrderSteps::is_harmless(const std::uint64_t* set, int operator_index) const {
  const std::vector<int>& touched = touched_[operator_index];
  return std::none_of(touched.begin(), touched.end(), [&](int storage) {
    return is_contested_[storage] && !dies(set, storage, operator_index);
  });
}

// Whether nobody but `operator_index` and the executed ones needs the storage.
bool OrderSteps::dies(const std::uint64_t* set, int storage, int operator_index) const {
  if (problem_.storages[storage].kept) return false;
  // What needs it last is likely to run last.
  const std::vector<int>& touchers = problem_.storages[storage].touchers;
  return std::all_of(touchers.rbegin(), touchers.rend(), [&](int toucher) {
    return toucher == operator_index || contains(set, toucher);
  });
}

std::int64_t peak_of(const OrderProblem& problem, const std::vector<int>& order) {
  const OrderSteps steps(problem);
  std::vector<std::uint64_t> set(steps.num_words(), 0);
  std::int64_t load = steps.initial_load();
  std::int64_t peak = load;
  for (const int operator_index : order) {
    const OrderSteps::Step step = steps.step(set.data(), load, operator_index);
    peak = std::max(peak, step.during);
    load = step.after;
    insert(set.data(), operator_index);
  }
  return peak;
}

std::int64_t least_peak(const OrderProblem& problem) {
  std::int64_t least = OrderSteps(problem).initial_load();
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

}  // namespace arenite
