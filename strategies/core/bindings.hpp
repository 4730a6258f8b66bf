// What the files that bind the core to Python share.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "usage_record.hpp"

namespace arenite {

// Usage records as Python hands them over: five columns, checked once.
class Records {
 public:
  // No sum of bytes goes beyond.
  static constexpr std::int64_t kMostBytes = std::int64_t{1} << 62;

  Records(const std::vector<std::int64_t>& starts, const std::vector<std::int64_t>& ends,
          const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& alignments,
          const std::vector<std::int64_t>& fixed);

  const std::vector<UsageRecord>& all() const { return all_; }
  // Sizes and alignments added up, above the highest fixed offset: no placement goes beyond.
  std::int64_t num_bytes() const { return num_bytes_; }

 private:
  std::vector<UsageRecord> all_;
  std::int64_t num_bytes_ = 0;
};

// The sum of sizes.
inline std::int64_t checked_sum(std::int64_t a, std::int64_t b) {
  if (b < 0) throw std::invalid_argument("a size is negative");
  if (a > Records::kMostBytes - b) {
    throw std::overflow_error("the sizes add up to more than 2^62");
  }
  return a + b;
}

void bind_bands(nanobind::module_& module);
void bind_order(nanobind::module_& module);
void bind_placement(nanobind::module_& module);

}  // namespace arenite
