// Some records placed, and what that leaves to those that wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "sections.hpp"

namespace arenite {

// Records are placed from the bottom up, so what is placed lies below everything that waits
// beside it. Of each waiting record we know its *base*, the lowest offset that those placed
// leave, and its *low*, a proved bound on its offset. Where they differ, a choice was made
// that it does not lie at its base; then another waiting record must carry it.
//
// Only plans are considered in which no record could be moved down with all others left
// alone. One of the lowest plans is such a plan: move records down until none moves.
class PartialPlan {
 public:
  struct Mark {
    std::size_t placed;
    std::size_t moves;
    std::size_t floors;
  };

  explicit PartialPlan(const Sections& sections);

  // Each returns whether the rest may still fit; if not, go back to an earlier mark.
  bool start(std::int64_t capacity);
  bool place(int record);         // at its base; nothing that waits beside it may be lower
  bool leave_empty(int section);  // nothing lies at its floor
  bool raise_floor(int section);  // raises the records known not to lie at its floor

  Mark mark() const { return {placed_.size(), moves_.size(), floor_changes_.size()}; }
  void undo_to(const Mark& mark);

  // Waiting records of a section.
  const int* begin(int section) const { return &members_[member_begin_[section]]; }
  const int* end(int section) const { return begin(section) + num_waiting_[section]; }
  bool is_done(int section) const { return num_waiting_[section] == 0; }
  // Whether a waiting record lives on both sides of the section's beginning.
  bool is_crossed(int section) const { return num_crossing_[section] > 0; }
  // The least low of a section's waiting records, units.
  std::int64_t floor(int section) const { return floors_[section]; }
  // Units of a section that may stay empty above its floor.
  std::int64_t slack(int section) const {
    return heights_[section] - floors_[section] - waiting_[section];
  }
  // How many records may lie at the section's floor.
  int num_options(int section) const { return num_options_[section]; }
  bool is_option(int record, std::int64_t offset) const {
    return places_[record].low == offset && places_[record].base == offset;
  }
  // Whether the record is not the one to come next among equals.
  bool is_redundant(int record) const;

  std::int64_t low(int record) const { return places_[record].low; }
  // When all is placed: units.
  std::int64_t offset(int record) const { return places_[record].base; }
  // Whether the last `place` may have split a piece in two.
  bool may_have_split() const { return may_have_split_; }

 private:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max() / 4;

  // Of a waiting record, units; the size is here to lie beside what is read with it.
  struct Place {
    std::int64_t base;
    std::int64_t low;
    std::int64_t size;
  };
  struct Placed {
    int record;
    int below;  // what was the topmost of its kind
  };
  struct Move {
    int record;
    std::int64_t base;
    std::int64_t low;
  };
  struct FloorChange {
    int section;
    std::int64_t floor;
    int num_options;
  };

  template <typename Action>
  bool for_each_met(int record, Action action) const;
  void take_out(int record);
  bool carry(int record);
  bool move(int record, std::int64_t base, std::int64_t low);
  void touch(int section);
  bool measure_touched(bool fits);
  bool measure(int section);

  const Sections& sections_;
  std::vector<std::size_t> member_begin_;  // by section
  std::vector<int> members_;               // of each section, those that wait first
  std::vector<std::size_t> slot_begin_;    // by record
  std::vector<int> slots_;                 // of each record, its place in each of its sections
  std::vector<int> num_waiting_;           // by section
  std::vector<std::int64_t> waiting_;      // by section: units
  std::vector<int> num_crossing_;          // by section
  std::vector<std::int64_t> heights_;      // by section: units that it may take
  std::vector<std::int64_t> floors_;       // by section
  std::vector<int> num_options_;           // by section
  std::vector<char> is_touched_;           // by section
  std::vector<int> touched_;               // sections
  std::vector<char> is_placed_;            // by record
  std::vector<std::int64_t> limits_;       // by record: the highest offset it may have
  std::vector<Place> places_;              // by record
  std::vector<int> topmost_;               // by kind: the record placed last, or -1
  std::vector<Placed> placed_;
  std::vector<Move> moves_;
  std::vector<FloorChange> floor_changes_;
  bool may_have_split_ = false;
};

}  // namespace arenite
