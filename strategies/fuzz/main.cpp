// Throws random problems at the native core and judges what comes back without it.
//
//     fuzz COUNT [FIRST_SEED]
//
// Exits 1 at the first wrong answer, naming the seed that gives it again.
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "../core/gap_search.hpp"
#include "../core/minimise.hpp"
#include "../core/order_search.hpp"
#include "check_plan.hpp"
#include "random_problems.hpp"

namespace arenite::fuzz {
namespace {

constexpr int kTiny = 6;  // every order can be tried
constexpr int kTinyGraph = 7;
constexpr std::int64_t kMostNodes = 20'000;
constexpr std::int64_t kMostStates = 20'000;

void require(bool is_right, const std::string& what) {
  if (!is_right) throw std::runtime_error(what);
}

void require_valid(const std::vector<UsageRecord>& records,
                   const std::vector<std::int64_t>& offsets, const std::string& maker) {
  const std::string found = fault(records, offsets);
  require(found.empty(), maker + ": " + found);
}

std::vector<std::int64_t> check_gap_search(const std::vector<UsageRecord>& records,
                                           Random& random) {
  const std::vector<int> order = random.permutation(static_cast<int>(records.size()));
  std::vector<std::int64_t> offsets;
  for (const Fit fit : {Fit::kTop, Fit::kBestTfliteCpu, Fit::kBest, Fit::kFirst}) {
    offsets = place_in_order(records, order, fit);
    require_valid(records, offsets, "gap search");
  }
  return offsets;
}

void check_minimiser(const std::vector<UsageRecord>& records, std::vector<std::int64_t> start,
                     Random& random) {
  const std::int64_t before = height_of(records, start);
  const Minimiser::Goal goal{random.coin() ? -1 : random.draw(0, before), random.coin()};
  std::int64_t polls_left =
      random.coin() ? std::numeric_limits<std::int64_t>::max() : random.draw(0, 20);
  Minimiser minimiser(records, std::move(start), 0, goal, random.draw(0, 1'000), kMostNodes);
  minimiser.run([&] { return polls_left-- <= 0; });
  const std::int64_t height = minimiser.height();
  const std::int64_t lower_bound = minimiser.lower_bound();
  require_valid(records, minimiser.offsets(), "minimiser");
  require(height == height_of(records, minimiser.offsets()), "minimiser: wrong height");
  require(height <= before, "minimiser: higher than it began");
  require(lower_bound <= height, "minimiser: bound above the height");
  if (records.size() > kTiny) return;
  const std::int64_t lowest = lowest_height(records);
  require(lower_bound <= lowest, "minimiser: bound above the lowest height");
  require(height >= lowest, "minimiser: below the lowest height");
}

void require_topological(const OrderProblem& problem, const std::vector<int>& order) {
  const std::size_t count = problem.predecessors.size();
  require(order.size() == count, "order: not every operator");
  std::vector<std::size_t> turn(count, count);
  for (std::size_t position = 0; position < count; ++position) {
    require(turn.at(order[position]) == count, "order: an operator comes twice");
    turn[order[position]] = position;
  }
  for (std::size_t index = 0; index < count; ++index) {
    for (const int before : problem.predecessors[index]) {
      require(turn[before] < turn[index], "order: an operator runs before its input is there");
    }
  }
}

std::int64_t lowest_peak(const OrderProblem& problem) {
  std::vector<int> order(problem.predecessors.size());
  for (std::size_t index = 0; index < order.size(); ++index) order[index] = static_cast<int>(index);
  std::int64_t best = std::numeric_limits<std::int64_t>::max();
  do {
    std::vector<char> done(order.size(), 0);
    const bool is_topological = std::all_of(order.begin(), order.end(), [&](int index) {
      done[index] = 1;
      return std::all_of(problem.predecessors[index].begin(), problem.predecessors[index].end(),
                         [&](int before) { return done[before] != 0; });
    });
    if (is_topological) best = std::min(best, peak_of(problem, order));
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

void check_orders(const OrderProblem& problem, Random& random) {
  const auto never = [] { return false; };
  const std::int64_t most_bytes = random.coin() ? std::int64_t{1} << 30 : random.draw(0, 4096);
  const std::int64_t most_work = random.coin() ? std::int64_t{1} << 40 : 0;
  const int width = static_cast<int>(random.draw(1, 8));
  std::int64_t polls_left = random.draw(0, 8);
  const auto soon = [&polls_left] { return polls_left-- <= 0; };
  const OrderResult stopped = beam_search(problem, width, most_bytes, most_work, soon);
  require_topological(problem, stopped.order);
  require(stopped.peak == peak_of(problem, stopped.order), "stopped beam: wrong peak");
  const OrderResult beam = beam_search(problem, width, most_bytes, most_work, never);
  require_topological(problem, beam.order);
  require(beam.peak == peak_of(problem, beam.order), "beam: wrong peak");
  const OrderResult exact = exact_search(problem, beam, {kMostStates, most_bytes}, never);
  require_topological(problem, exact.order);
  require(exact.peak == peak_of(problem, exact.order), "exact order: wrong peak");
  require(exact.peak <= beam.peak, "exact order: higher than it began");
  require(exact.peak >= least_peak(problem), "exact order: below the bound");
  if (exact.outcome != OrderOutcome::kOptimal || problem.predecessors.size() > kTinyGraph) return;
  require(exact.peak == lowest_peak(problem), "exact order: not the lowest peak");
}

void check(std::uint64_t seed) {
  Random random(seed);
  const std::vector<UsageRecord> records = random_records(random, random.coin() ? kTiny : 80);
  check_minimiser(records, check_gap_search(records, random), random);
  check_orders(random_graph(random, random.coin() ? kTinyGraph : 30), random);
}

}  // namespace
}  // namespace arenite::fuzz

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::cerr << "usage: fuzz COUNT [FIRST_SEED]\n";
    return 2;
  }
  const std::uint64_t count = std::strtoull(argv[1], nullptr, 10);
  const std::uint64_t first = argc == 3 ? std::strtoull(argv[2], nullptr, 10) : 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    try {
      arenite::fuzz::check(seed);
    } catch (const std::exception& error) {
      std::cerr << "seed " << seed << ": " << error.what() << '\n';
      return 1;
    }
  }
  std::cout << count << " problems, no fault\n";
  return 0;
}
