// What a plan must be and the lowest there is, found without the core.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../core/usage_record.hpp"

namespace arenite::fuzz {

bool meet(const UsageRecord& a, const UsageRecord& b);

// Returns the first byte above every record.
std::int64_t height_of(const std::vector<UsageRecord>& records,
                       const std::vector<std::int64_t>& offsets);

// Returns what is wrong with a plan, or nothing.
std::string fault(const std::vector<UsageRecord>& records,
                  const std::vector<std::int64_t>& offsets);

// Returns the lowest offset from `from` up at which a record meets none of the fixed.
std::int64_t lowest_free_offset(const std::vector<UsageRecord>& records, int index,
                                std::int64_t from);

// Returns the height of a lowest plan, by placing the records in every order.
std::int64_t lowest_height(const std::vector<UsageRecord>& records);

}  // namespace arenite::fuzz
