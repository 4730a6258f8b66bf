// Does a plan of at most so many bytes exist? An exhaustive search over placements in
// which every record rests on the floor or on another.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "live_index.hpp"

namespace arenite {

// Records as the search sees them. Time is cut into sections, the largest sets of records
// that are live together; a record spans sections [first, last).
class Sections {
 public:
  Sections(const std::vector<Lifetime>& lifetimes, std::vector<std::int64_t> sizes,
           std::vector<std::int64_t> alignments);

  struct Span {
    int first;
    int last;
  };

  int num_records() const { return static_cast<int>(sizes.size()); }
  int num_sections() const { return static_cast<int>(members.size()); }

  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> alignments;
  std::vector<std::int64_t> lengths;       // by record: steps of its lifetime
  std::vector<Span> spans;                 // by record
  std::vector<std::vector<int>> members;   // by section: records
  std::vector<std::vector<int>> overlaps;  // by record: records live at the same time
  std::vector<int> twin_before;            // by record: one just like it, or -1
};

enum class Verdict {
  kFits,        // a plan was found
  kImpossible,  // no plan exists
  kUnknown,     // the nodes ran out, or the search was stopped
};

// Orders records that could be placed at the same offset, those that are hard to place
// first: it decides how long a search takes, not what it finds. The key of a record is the
// product of its lifetime, its area and the load it is part of, each to its exponent; equal
// keys are told apart by area, then lifetime.
struct Ranking {
  double lifetime = 0;
  double area = 0;
  double load = 0;
  std::vector<double> factors;  // by record, to mix the order up; none for 1
};

// One search.
class ExactSearch {
 public:
  ExactSearch(const Sections& sections, const Ranking& ranking, std::int64_t capacity,
              std::int64_t max_nodes, const std::atomic<bool>& stop);

  Verdict run();
  const std::vector<std::int64_t>& offsets() const { return offsets_; }
  std::int64_t num_nodes() const { return num_nodes_; }

 private:
  // Sections between which no unplaced record passes, with the records inside.
  struct Piece {
    int first;
    int last;
    std::vector<int> records;  // the first `count` are unplaced
    int count;
  };
  struct Change {
    enum Kind : std::uint8_t { kOffset, kFloor, kPlaced } kind;
    int index;
    int lowest;          // of kFloor: the record that set it
    std::int64_t value;  // before the change
  };

  bool solve(Piece& piece, std::int64_t last_offset, int last_rank);
  bool solve_parts(const Piece& piece, std::int64_t last_offset);
  void rank(const Piece& piece);
  bool place(const Piece& piece, int record);
  void undo_to(std::size_t mark);
  void find_floor(int section);
  void collect(const Piece& piece, std::int64_t last_offset, int last_rank);

  const Sections& sections_;
  const Ranking& ranking_;
  const std::int64_t capacity_;
  const std::int64_t max_nodes_;
  const std::atomic<bool>& stop_;

  std::int64_t num_nodes_ = 0;
  bool gave_up_ = false;
  bool cut_open_ = false;               // the last placement opened a boundary
  std::vector<int> rank_;               // by record
  std::vector<std::int64_t> offsets_;   // by record: where it lies, or the least it could
  std::vector<char> placed_;            // by record
  std::vector<std::int64_t> waiting_;   // by section: bytes of its unplaced records
  std::vector<std::int64_t> floors_;    // by section: least offset of an unplaced record
  std::vector<int> lowest_;             // by section: the record with that offset
  std::vector<int> crossings_;          // by section: unplaced records that enter it
  std::vector<std::int64_t> raised_at_; // by record: the placement that raised it last
  std::int64_t placement_ = 0;
  std::vector<Change> trail_;
  std::vector<int> candidates_;         // of all open nodes, one after the other
};

}  // namespace arenite
