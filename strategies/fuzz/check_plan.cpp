#include "check_plan.hpp"

#include <algorithm>
#include <limits>

namespace arenite::fuzz {
namespace {

bool share_bytes(const UsageRecord& a, std::int64_t a_offset, const UsageRecord& b,
                 std::int64_t b_offset) {
  return meet(a, b) && a_offset < b_offset + b.size && b_offset < a_offset + a.size;
}

// Places the rest of the records in every order, each as low as those before it leave.
void place_rest(std::vector<UsageRecord>& records, std::int64_t height, std::int64_t& best) {
  if (height >= best) return;
  bool any = false;
  for (std::size_t index = 0; index < records.size(); ++index) {
    UsageRecord& record = records[index];
    if (record.fixed >= 0) continue;
    any = true;
    record.fixed = lowest_free_offset(records, static_cast<int>(index), 0);
    place_rest(records, std::max(height, record.fixed + record.size), best);
    record.fixed = -1;
  }
  if (!any) best = height;
}

}  // namespace

bool meet(const UsageRecord& a, const UsageRecord& b) { return a.start < b.end && b.start < a.end; }

std::int64_t height_of(const std::vector<UsageRecord>& records,
                       const std::vector<std::int64_t>& offsets) {
  std::int64_t height = 0;
  for (std::size_t index = 0; index < records.size(); ++index) {
    height = std::max(height, offsets[index] + records[index].size);
  }
  return height;
}

std::string fault(const std::vector<UsageRecord>& records,
                  const std::vector<std::int64_t>& offsets) {
  if (offsets.size() != records.size()) return "not one offset for each record";
  for (std::size_t i = 0; i < records.size(); ++i) {
    const std::string name = "record " + std::to_string(i);
    if (offsets[i] < 0) return name + " lies below the arena";
    if (offsets[i] % records[i].alignment != 0) return name + " is not aligned";
    if (records[i].fixed >= 0 && offsets[i] != records[i].fixed) return name + " was moved";
    for (std::size_t j = 0; j < i; ++j) {
      if (share_bytes(records[i], offsets[i], records[j], offsets[j])) {
        return name + " shares bytes with record " + std::to_string(j);
      }
    }
  }
  return "";
}

std::int64_t lowest_free_offset(const std::vector<UsageRecord>& records, int index,
                                std::int64_t from) {
  const UsageRecord& record = records[index];
  std::int64_t offset = (from + record.alignment - 1) / record.alignment * record.alignment;
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t other = 0; other < records.size(); ++other) {
      if (static_cast<int>(other) == index || records[other].fixed < 0) continue;
      if (!share_bytes(record, offset, records[other], records[other].fixed)) continue;
      const std::int64_t top = records[other].fixed + records[other].size;
      offset = (top + record.alignment - 1) / record.alignment * record.alignment;
      moved = true;
    }
  }
  return offset;
}

std::int64_t lowest_height(const std::vector<UsageRecord>& records) {
  std::vector<UsageRecord> placed = records;
  std::int64_t height = 0;
  for (const UsageRecord& record : records) {
    if (record.fixed >= 0) height = std::max(height, record.fixed + record.size);
  }
  std::int64_t best = std::numeric_limits<std::int64_t>::max();
  place_rest(placed, height, best);
  return best;
}

}  // namespace arenite::fuzz
