#include "partial_plan.hpp"

#include <algorithm>
#include <utility>

namespace arenite {

PartialPlan::PartialPlan(const Sections& sections)
    : sections_(sections),
      num_waiting_(sections.num_sections(), 0),
      waiting_(sections.num_sections()),
      num_crossing_(sections.num_sections()),
      heights_(sections.num_sections()),
      floors_(sections.num_sections()),
      num_options_(sections.num_sections()),
      is_touched_(sections.num_sections(), 0),
      is_placed_(sections.num_records()),
      limits_(sections.num_records()) {
  places_.reserve(sections.num_records());
  for (const Sections::Record& record : sections.records) places_.push_back({0, 0, record.size});
  member_begin_.assign(sections.num_sections() + 1, 0);
  for (const Sections::Record& record : sections.records) {
    for (int s = record.first; s < record.last; ++s) ++member_begin_[s + 1];
  }
  for (int s = 0; s < sections.num_sections(); ++s) member_begin_[s + 1] += member_begin_[s];
  members_.resize(member_begin_.back());
  slots_.reserve(members_.size());
  for (int index = 0; index < sections.num_records(); ++index) {
    slot_begin_.push_back(slots_.size());
    const Sections::Record& record = sections.records[index];
    for (int s = record.first; s < record.last; ++s) {
      slots_.push_back(num_waiting_[s]);
      members_[member_begin_[s] + num_waiting_[s]++] = index;
    }
  }
}

bool PartialPlan::start(std::int64_t capacity) {
  undo_to({0, 0, 0});
  waiting_ = sections_.loads;
  std::fill(num_crossing_.begin(), num_crossing_.end(), 0);
  topmost_.assign(sections_.num_kinds, -1);
  for (int index = 0; index < sections_.num_records(); ++index) {
    const Sections::Record& record = sections_.records[index];
    const std::int64_t room = capacity - sections_.top(record, 0);
    if (room < 0) return false;
    limits_[index] = room / sections_.unit;
    places_[index].base = sections_.lowest_from(record, 0);
    if (record.fixed >= 0) {
      limits_[index] = std::min(limits_[index], record.fixed);
      places_[index].base = record.fixed;
    }
    places_[index].low = places_[index].base;
    if (places_[index].low > limits_[index]) return false;
    for (int s = record.first + 1; s < record.last; ++s) ++num_crossing_[s];
  }
  for (int s = 0; s < sections_.num_sections(); ++s) {
    heights_[s] = (capacity + sections_.paddings[s]) / sections_.unit;
    if (!measure(s)) return false;
  }
  floor_changes_.clear();
  return true;
}

// Calls `action` for each waiting record that meets this one, until it returns false.
template <typename Action>
bool PartialPlan::for_each_met(int record, Action action) const {
  const Sections::Record& own = sections_.records[record];
  for (const int* other = begin(own.first); other != end(own.first); ++other) {
    if (*other != record && !action(*other)) return false;
  }
  for (int other = sections_.starting[own.first + 1]; other < sections_.starting[own.last];
       ++other) {
    if (!is_placed_[other] && !action(other)) return false;
  }
  return true;
}

bool PartialPlan::place(int record) {
  const Sections::Record& own = sections_.records[record];
  const std::int64_t top = places_[record].base + own.size;
  take_out(record);
  const bool fits = for_each_met(record, [&](int other) {
    if (places_[other].base >= top) return true;
    const std::int64_t base = sections_.records[other].fixed >= 0
                                  ? top
                                  : sections_.lowest_from(sections_.records[other], top);
    return move(other, base, std::max(places_[other].low, base));
  });
  return measure_touched(fits);
}

// Moves a record behind those that wait, in each of its sections. Undone in reverse order,
// it need not be moved back.
void PartialPlan::take_out(int record) {
  const Sections::Record& own = sections_.records[record];
  is_placed_[record] = 1;
  placed_.push_back({record, -1});
  if (own.kind >= 0) placed_.back().below = std::exchange(topmost_[own.kind], record);
  may_have_split_ = false;
  for (int s = own.first; s < own.last; ++s) {
    waiting_[s] -= own.size;
    const int last = --num_waiting_[s];
    int* const members = &members_[member_begin_[s]];
    int& slot = slots_[slot_begin_[record] + s - own.first];
    const int other = members[last];
    std::swap(members[slot], members[last]);
    slots_[slot_begin_[other] + s - sections_.records[other].first] = slot;
    slot = last;
    if (s > own.first && --num_crossing_[s] == 0) may_have_split_ = true;
    if (last > 0) touch(s);
  }
}

bool PartialPlan::leave_empty(int section) {
  const std::int64_t level = floors_[section];
  may_have_split_ = false;
  bool fits = true;
  // The second round sees what the first has raised.
  for (int round = 0; round < 2 && fits; ++round) {
    for (const int* record = begin(section); record != end(section) && fits; ++record) {
      if (places_[*record].base == level) fits = carry(*record);
    }
  }
  return measure_touched(fits);
}

bool PartialPlan::raise_floor(int section) {
  const std::int64_t level = floors_[section];
  may_have_split_ = false;
  bool fits = true;
  for (const int* record = begin(section); record != end(section) && fits; ++record) {
    if (places_[*record].low == level && places_[*record].base < level) fits = carry(*record);
  }
  return measure_touched(fits);
}

// Raises a record that does not lie at its base to where another may carry it. One that
// nothing comes under would fall back to its base.
bool PartialPlan::carry(int record) {
  const Sections::Record& own = sections_.records[record];
  std::int64_t carried = kNever;
  std::int64_t lowest = kNever;
  for_each_met(record, [&](int other) {
    carried = std::min(carried, places_[other].low + places_[other].size);
    lowest = std::min(lowest, places_[other].low);
    return true;
  });
  if (lowest >= places_[record].base + own.size) return false;
  carried = sections_.lowest_from(own, carried);
  return carried <= places_[record].low || move(record, places_[record].base, carried);
}

bool PartialPlan::move(int record, std::int64_t base, std::int64_t low) {
  Place& place = places_[record];
  const Sections::Record& own = sections_.records[record];
  for (int s = own.first; s < own.last; ++s) {
    if (floors_[s] == place.low) touch(s);
  }
  moves_.push_back({record, place.base, place.low});
  place.base = base;
  place.low = low;
  return low <= limits_[record];
}

// Notes that the floor of a section may have changed.
void PartialPlan::touch(int section) {
  if (is_touched_[section]) return;
  is_touched_[section] = 1;
  touched_.push_back(section);
}

// Forgets what was touched; measures it first unless all is lost.
bool PartialPlan::measure_touched(bool fits) {
  for (const int section : touched_) {
    is_touched_[section] = 0;
    fits = fits && measure(section);
  }
  touched_.clear();
  return fits;
}

// Finds the floor of a section anew. What waits must fit above it.
bool PartialPlan::measure(int section) {
  std::int64_t floor = kNever;
  int num_options = 0;
  for (const int* record = begin(section); record != end(section); ++record) {
    const Place& place = places_[*record];
    if (place.low < floor) {
      floor = place.low;
      num_options = 0;
    }
    if (place.low == floor && place.base == floor) ++num_options;
  }
  if (floor != floors_[section] || num_options != num_options_[section]) {
    floor_changes_.push_back({section, floors_[section], num_options_[section]});
    floors_[section] = floor;
    num_options_[section] = num_options;
  }
  return floor + waiting_[section] <= heights_[section];
}

// Twins come in the order of their indices. Of two records of one span, one right on top of
// the other, the larger lies below: they could change places.
bool PartialPlan::is_redundant(int record) const {
  const Sections::Record& own = sections_.records[record];
  if (own.twin >= 0 && !is_placed_[own.twin]) return true;
  if (own.kind < 0 || topmost_[own.kind] < 0) return false;
  const std::int64_t size = sections_.records[topmost_[own.kind]].size;
  return size < own.size && places_[topmost_[own.kind]].base + size == places_[record].base;
}

void PartialPlan::undo_to(const Mark& mark) {
  while (floor_changes_.size() > mark.floors) {
    const FloorChange& change = floor_changes_.back();
    floors_[change.section] = change.floor;
    num_options_[change.section] = change.num_options;
    floor_changes_.pop_back();
  }
  while (moves_.size() > mark.moves) {
    const Move& move = moves_.back();
    places_[move.record].base = move.base;
    places_[move.record].low = move.low;
    moves_.pop_back();
  }
  while (placed_.size() > mark.placed) {
    const auto [record, below] = placed_.back();
    placed_.pop_back();
    const Sections::Record& own = sections_.records[record];
    is_placed_[record] = 0;
    if (own.kind >= 0) topmost_[own.kind] = below;
    for (int s = own.first; s < own.last; ++s) {
      waiting_[s] += own.size;
      ++num_waiting_[s];
      if (s > own.first) ++num_crossing_[s];
    }
  }
}

}  // namespace arenite
