// Does a plan of at most so many bytes exist? A complete search, one section's floor at a
// time.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "partial_plan.hpp"
#include "sections.hpp"

namespace arenite {

enum class Verdict {
  kFits,        // a plan was found
  kImpossible,  // no plan exists
  kUnknown,     // the nodes ran out, or the search was stopped
};

// Decides how long a search takes, not what it proves.
struct Guidance {
  // Which section is filled next.
  enum class Pick {
    kTightest,        // the least slack, then the fewest possibilities
    kFewest,          // the fewest possibilities, then the least slack
    kLowestTightest,  // the lowest floor, then as kTightest
    kLowestFewest,    // the lowest floor, then as kFewest
  };
  Pick pick;
  std::vector<double> priorities;  // by record: of several that may come next, highest first
};

// At a section's floor lies one of its waiting records, or nothing: each possibility is
// tried in turn. Where no waiting record passes, the rest is solved in independent pieces.
class ExactSearch {
 public:
  using ShouldStop = std::function<bool()>;

  // `sections` must outlive the search.
  explicit ExactSearch(const Sections& sections);

  Verdict run(std::int64_t capacity, const Guidance& guidance, std::int64_t max_nodes,
              const ShouldStop& should_stop);
  // When a plan was found: of a record of the sections, units.
  std::int64_t offset(int record) const { return plan_.offset(record); }
  // Of the last run.
  std::int64_t num_nodes() const { return num_nodes_; }

 private:
  // Sections [first, last) that no waiting record enters or leaves.
  struct Piece {
    int first;
    int last;
  };
  // A choice at a section's floor, or, for section -1, pieces to be solved one by one.
  struct Frame {
    Piece piece;
    int section;
    int split;          // the frame of the split whose piece this is part of, or -1
    std::size_t first;  // in options_, or in pieces_
    std::size_t next;
    std::size_t last;
    bool may_be_empty;
    PartialPlan::Mark mark;
  };
  enum class Opened { kFrame, kNothing, kDeadEnd };

  Opened open(Piece piece, int split);
  Opened open_choice(Piece piece, int split);
  bool take_next(Frame& frame);
  int choose(Piece piece);
  int descend(int section) const;
  bool is_better(int section, int than) const;
  bool has_stale_floor(int section) const;

  const Sections& sections_;
  const Guidance* guidance_ = nullptr;
  PartialPlan plan_;
  std::vector<Frame> frames_;
  std::vector<int> options_;
  std::vector<Piece> pieces_;
  std::int64_t num_nodes_ = 0;
};

}  // namespace arenite
