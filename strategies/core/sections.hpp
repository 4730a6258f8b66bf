// Records as the exact search sees them: time cut into sections, bytes counted in units.
#pragma once

#include <cstdint>
#include <vector>

#include "usage_record.hpp"

namespace arenite {

// The records of a stretch of time without a gap, in order of their start. A section is a
// largest set of records that are live together; a record spans sections [first, last).
class Sections {
 public:
  struct Record {
    int source;  // index among the records given
    int first;
    int last;
    std::int64_t lifetime;       // steps
    std::int64_t size;           // units, rounded up: nobody can use the rest of the last
    std::int64_t padding;        // bytes of that rounding
    std::int64_t alignment;      // units
    std::int64_t fixed;          // units, or -1
    int twin;                    // the record before it that is just like it, or -1
    int kind;                    // of records that may change places: one number a span; or -1
    std::vector<int> obstacles;  // fixed records that a movable one meets, by offset
  };

  Sections(const std::vector<UsageRecord>& all, const std::vector<int>& members);

  int num_records() const { return static_cast<int>(records.size()); }
  int num_sections() const { return static_cast<int>(starting.size()) - 1; }
  // Sum over the sections of the records live there.
  std::int64_t num_memberships() const;

  // Returns the first byte above a record that lies at an offset in units.
  std::int64_t top(const Record& record, std::int64_t offset) const {
    return (offset + record.size) * unit - record.padding;
  }
  // Returns the lowest offset from `offset` up that no fixed record forbids.
  std::int64_t lowest_from(const Record& record, std::int64_t offset) const;
  // Returns bytes that any plan of these records needs.
  std::int64_t lower_bound() const;
  // Returns the least height above `height` that a plan can have.
  std::int64_t next_height(std::int64_t height) const;

  std::int64_t unit;  // bytes; every offset worth trying is a multiple of it
  std::vector<Record> records;
  std::vector<int> starting;           // by section: its first new record; one more for the end
  std::vector<std::int64_t> loads;     // by section: units
  std::vector<std::int64_t> paddings;  // by section: bytes of its most padded record
  int num_kinds = 0;

 private:
  void divide(const std::vector<UsageRecord>& all, const std::vector<int>& members);
  void find_equals();
  void find_obstacles();
};

// Returns the records' indices, one list for each stretch of time without a gap.
std::vector<std::vector<int>> stretches(const std::vector<UsageRecord>& all);

}  // namespace arenite
