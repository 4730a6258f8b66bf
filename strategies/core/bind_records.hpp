// Usage records as Python hands them over: five columns, checked once.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <vector>

#include "usage_record.hpp"

namespace arenite {

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

void bind_records(nanobind::module_& module);

}  // namespace arenite
