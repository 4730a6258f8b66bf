#include "random_problems.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "check_plan.hpp"

namespace arenite::fuzz {

std::int64_t Random::draw(std::int64_t least, std::int64_t most) {
  const auto choices = static_cast<std::uint64_t>(most - least) + 1;
  return least + static_cast<std::int64_t>(engine_() % choices);
}

std::vector<int> Random::permutation(int count) {
  std::vector<int> order(count);
  std::iota(order.begin(), order.end(), 0);
  for (int left = count; left > 1; --left) { std::swap(order[left - 1], order[draw(0, left - 1)]); }
  return order;
}

std::vector<UsageRecord> random_records(Random& random, int most_records) {
  const int num_records = static_cast<int>(random.draw(1, most_records));
  const std::int64_t num_steps = random.draw(1, 2 * most_records);
  const std::int64_t longest = random.draw(1, num_steps);
  const std::int64_t unit = std::int64_t{1} << random.draw(0, random.coin() ? 0 : 20);
  const std::int64_t largest = random.draw(1, random.coin() ? 6 : 500);
  const std::int64_t most_aligned = random.coin() ? 0 : 6;
  std::vector<UsageRecord> records;
  for (int index = 0; index < num_records; ++index) {
    const std::int64_t start = random.draw(0, num_steps - 1);
    const std::int64_t end = std::min(num_steps, start + random.draw(1, longest));
    const std::int64_t alignment = std::int64_t{1} << random.draw(0, most_aligned);
    records.push_back({start, end, unit * random.draw(1, largest), alignment, -1});
  }
  if (random.coin()) return records;
  // Drop the records one by one and keep a few where they fall, sometimes with room below.
  for (const int index : random.permutation(num_records)) {
    if (!random.coin() || !random.coin()) continue;
    UsageRecord& record = records[index];
    const std::int64_t room = record.alignment * random.draw(0, random.coin() ? 0 : 8);
    record.fixed = lowest_free_offset(records, index, room);
  }
  return records;
}

OrderProblem random_graph(Random& random, int most_operators) {
  const int num_operators = static_cast<int>(random.draw(1, most_operators));
  OrderProblem problem;
  problem.predecessors.resize(num_operators);
  problem.replaceable.resize(num_operators);
  problem.storages.push_back({random.draw(1, 20), -1, {0}, random.coin()});
  for (int index = 0; index < num_operators; ++index) {
    problem.scratch.push_back(random.coin() ? 0 : random.draw(0, 10));
    problem.storages.push_back({random.draw(1, 20), index, {index}, false});
    const std::vector<int> earlier = random.permutation(index);
    const auto num_read = std::min<std::int64_t>(index, random.draw(0, 3));
    for (int read = 0; read < num_read; ++read) {
      problem.predecessors[index].push_back(earlier[read]);
      problem.storages[earlier[read] + 1].touchers.push_back(index);
      if (random.coin()) problem.replaceable[index].push_back(earlier[read] + 1);
    }
    std::sort(problem.predecessors[index].begin(), problem.predecessors[index].end());
  }
  for (OrderProblem::Storage& storage : problem.storages) {
    if (storage.touchers.size() == 1) storage.kept = random.coin();
  }
  return problem;
}

}  // namespace arenite::fuzz
