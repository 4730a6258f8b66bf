#include "sections.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

namespace arenite {
namespace {

std::int64_t divide_up(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

std::int64_t common_unit(const std::vector<UsageRecord>& all, const std::vector<int>& members) {
  // Every offset is a multiple of the least alignment, so sizes may be rounded up to it.
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const int index : members) least = std::min(least, all[index].alignment);
  std::int64_t unit = 0;
  for (const int index : members) {
    unit = std::gcd(unit, divide_up(all[index].size, least) * least);
    if (all[index].fixed >= 0) unit = std::gcd(unit, all[index].fixed);
  }
  // An alignment that divides all of them says nothing more.
  std::int64_t aligned = unit;
  for (const int index : members) {
    if (unit % all[index].alignment != 0) aligned = std::gcd(aligned, all[index].alignment);
  }
  return aligned;
}

}  // namespace

std::vector<std::vector<int>> stretches(const std::vector<UsageRecord>& all) {
  std::vector<int> by_start(all.size());
  std::iota(by_start.begin(), by_start.end(), 0);
  std::stable_sort(by_start.begin(), by_start.end(),
                   [&](int a, int b) { return all[a].start < all[b].start; });
  std::vector<std::vector<int>> found;
  std::int64_t end = std::numeric_limits<std::int64_t>::min();
  for (const int index : by_start) {
    if (all[index].start >= end) found.emplace_back();
    found.back().push_back(index);
    end = std::max(end, all[index].end);
  }
  return found;
}

Sections::Sections(const std::vector<UsageRecord>& all, const std::vector<int>& members)
    : unit(common_unit(all, members)) {
  divide(all, members);
  find_equals();
  find_obstacles();
  loads.assign(num_sections(), 0);
  paddings.assign(num_sections(), 0);
  for (const Record& record : records) {
    for (int section = record.first; section < record.last; ++section) {
      loads[section] += record.size;
      paddings[section] = std::max(paddings[section], record.padding);
    }
  }
}

// A section ends where a record dies after one was born: what lives just before is a set
// that no other set of records live together contains.
void Sections::divide(const std::vector<UsageRecord>& all, const std::vector<int>& members) {
  struct Event {
    std::int64_t step;
    bool birth;  // deaths first: lifetimes are half-open
    int index;
    bool operator<(const Event& other) const {
      return std::tie(step, birth, index) < std::tie(other.step, other.birth, other.index);
    }
  };
  std::vector<Event> events;
  for (const int index : members) {
    events.push_back({all[index].start, true, index});
    events.push_back({all[index].end, false, index});
  }
  std::sort(events.begin(), events.end());
  std::map<int, int> position;
  int section = 0;
  bool born = false;
  for (const Event& event : events) {
    if (event.birth) {
      if (num_sections() < section) starting.push_back(num_records());
      position[event.index] = num_records();
      const UsageRecord& from = all[event.index];
      const std::int64_t size = divide_up(from.size, unit);
      records.push_back({event.index,
                         section,
                         section,
                         from.end - from.start,
                         size,
                         size * unit - from.size,
                         std::max<std::int64_t>(from.alignment / unit, 1),
                         from.fixed >= 0 ? from.fixed / unit : -1,
                         -1,
                         -1,
                         {}});
      born = true;
    } else {
      if (born) ++section;
      born = false;
      records[position[event.index]].last = section;
    }
  }
  starting.push_back(num_records());
}

void Sections::find_equals() {
  std::map<std::tuple<int, int, std::int64_t, std::int64_t, std::int64_t>, int> last_twin;
  std::map<std::pair<int, int>, int> kinds;
  for (int index = 0; index < num_records(); ++index) {
    Record& record = records[index];
    if (record.fixed >= 0) continue;
    const auto looks =
        std::make_tuple(record.first, record.last, record.size, record.padding, record.alignment);
    const auto [entry, is_new] = last_twin.emplace(looks, index);
    if (!is_new) record.twin = std::exchange(entry->second, index);
    if (record.alignment == 1 && record.padding == 0) {
      const auto span = std::make_pair(record.first, record.last);
      record.kind = kinds.emplace(span, static_cast<int>(kinds.size())).first->second;
    }
  }
  num_kinds = static_cast<int>(kinds.size());
}

void Sections::find_obstacles() {
  std::vector<int> fixed;
  for (int index = 0; index < num_records(); ++index) {
    if (records[index].fixed >= 0) fixed.push_back(index);
  }
  std::stable_sort(fixed.begin(), fixed.end(),
                   [&](int a, int b) { return records[a].fixed < records[b].fixed; });
  for (Record& record : records) {
    if (record.fixed >= 0) continue;
    for (const int other : fixed) {
      if (records[other].first < record.last && record.first < records[other].last) {
        record.obstacles.push_back(other);
      }
    }
  }
}

std::int64_t Sections::num_memberships() const {
  std::int64_t sum = 0;
  for (const Record& record : records) sum += record.last - record.first;
  return sum;
}

std::int64_t Sections::lowest_from(const Record& record, std::int64_t offset) const {
  offset = divide_up(offset, record.alignment) * record.alignment;
  for (const int index : record.obstacles) {
    const Record& obstacle = records[index];
    if (obstacle.fixed >= offset + record.size) break;
    const std::int64_t top = obstacle.fixed + obstacle.size;
    if (top > offset) offset = divide_up(top, record.alignment) * record.alignment;
  }
  return offset;
}

std::int64_t Sections::lower_bound() const {
  std::int64_t bound = 0;
  for (const Record& record : records) {
    const std::int64_t lowest = record.fixed >= 0 ? record.fixed : lowest_from(record, 0);
    bound = std::max(bound, top(record, lowest));
  }
  for (int section = 0; section < num_sections(); ++section) {
    bound = std::max(bound, loads[section] * unit - paddings[section]);
  }
  return bound;
}

std::int64_t Sections::next_height(std::int64_t height) const {
  std::int64_t next = height + unit;
  for (const Record& record : records) {
    next = std::min(next, ((height + record.padding) / unit + 1) * unit - record.padding);
  }
  return next;
}

}  // namespace arenite
