// Problems drawn from a seed.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "../core/order_search.hpp"
#include "../core/usage_record.hpp"

namespace arenite::fuzz {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  // Returns an integer from `least` to `most`, both possible.
  std::int64_t draw(std::int64_t least, std::int64_t most);
  bool coin() { return draw(0, 1) == 1; }
  // Returns 0 to count - 1 in random order.
  std::vector<int> permutation(int count);

 private:
  std::mt19937_64 engine_;
};

// Draws records; where some have a fixed offset, at least one plan has them all.
std::vector<UsageRecord> random_records(Random& random, int most_records);

// Draws operators, each reading some of those before it.
OrderProblem random_graph(Random& random, int most_operators);

}  // namespace arenite::fuzz
