#include "exact_search.hpp"

#include <algorithm>

namespace arenite {
namespace {

constexpr std::int64_t kWorkBetweenPolls = 200'000;  // records times nodes

}  // namespace

ExactSearch::ExactSearch(const Sections& sections) : sections_(sections), plan_(sections) {}

Verdict ExactSearch::run(std::int64_t capacity, const Guidance& guidance, std::int64_t max_nodes,
                         const ShouldStop& should_stop) {
  guidance_ = &guidance;
  num_nodes_ = 0;
  frames_.clear();
  options_.clear();
  pieces_.clear();
  if (!plan_.start(capacity)) return Verdict::kImpossible;
  if (open({0, sections_.num_sections()}, -1) == Opened::kNothing) return Verdict::kFits;
  const std::int64_t poll_every = kWorkBetweenPolls / sections_.num_records() + 1;
  while (!frames_.empty()) {
    const std::size_t depth = frames_.size() - 1;
    Opened opened = Opened::kDeadEnd;
    int split = frames_[depth].split;
    if (frames_[depth].section < 0) {
      Frame& frame = frames_[depth];
      if (frame.next < frame.last) {
        opened = open_choice(pieces_[frame.next++], static_cast<int>(depth));
      } else {
        opened = Opened::kNothing;
      }
    } else {
      if (frames_[depth].next == frames_[depth].last && !frames_[depth].may_be_empty) {
        plan_.undo_to(frames_[depth].mark);
      } else {
        if (num_nodes_ == max_nodes) return Verdict::kUnknown;
        if (++num_nodes_ % poll_every == 0 && should_stop()) return Verdict::kUnknown;
        if (!take_next(frames_[depth])) continue;
        opened = open(frames_[depth].piece, split);
        if (opened == Opened::kDeadEnd) continue;
      }
    }
    if (opened == Opened::kNothing) {
      // The piece is solved, and all that was chosen in it stays.
      if (split < 0) return Verdict::kFits;
      frames_.resize(split + 1);
    } else if (opened == Opened::kDeadEnd) {
      // One piece without a solution is enough for its split to have none.
      options_.resize(frames_[depth].section < 0 ? options_.size() : frames_[depth].first);
      do {
        if (frames_.back().section < 0) pieces_.resize(frames_.back().first);
        frames_.pop_back();
      } while (!frames_.empty() && frames_.back().section < 0);
    }
  }
  return Verdict::kImpossible;
}

// Tries the next possibility of a choice. Returns whether the rest may still fit.
bool ExactSearch::take_next(Frame& frame) {
  plan_.undo_to(frame.mark);
  if (frame.next < frame.last) return plan_.place(options_[frame.next++]);
  frame.may_be_empty = false;
  return plan_.leave_empty(frame.section);
}

// Pushes what is to be decided next in a piece.
ExactSearch::Opened ExactSearch::open(Piece piece, int split) {
  if (!frames_.empty() && !plan_.may_have_split()) return open_choice(piece, split);
  const std::size_t begin = pieces_.size();
  for (int s = piece.first; s < piece.last; ++s) {
    if (plan_.is_done(s)) continue;
    Piece part{s, s + 1};
    while (part.last < piece.last && plan_.is_crossed(part.last)) ++part.last;
    pieces_.push_back(part);
    s = part.last - 1;
  }
  const std::size_t num_pieces = pieces_.size() - begin;
  if (num_pieces == 0) return Opened::kNothing;
  if (num_pieces == 1) {
    piece = pieces_.back();
    pieces_.pop_back();
    return open_choice(piece, split);
  }
  // The tightest first: if one has no solution, this is the one.
  const auto slack = [this](Piece part) {
    std::int64_t least = plan_.slack(part.first);
    for (int s = part.first; s < part.last; ++s) least = std::min(least, plan_.slack(s));
    return least;
  };
  std::stable_sort(pieces_.begin() + static_cast<std::ptrdiff_t>(begin), pieces_.end(),
                   [&](Piece a, Piece b) { return slack(a) < slack(b); });
  frames_.push_back({piece, -1, split, begin, begin, pieces_.size(), false, plan_.mark()});
  return Opened::kFrame;
}

ExactSearch::Opened ExactSearch::open_choice(Piece piece, int split) {
  int section = choose(piece);
  if (section < 0) return Opened::kNothing;
  while (has_stale_floor(section)) {
    if (!plan_.raise_floor(section)) return Opened::kDeadEnd;
    section = choose(piece);
  }
  const std::size_t begin = options_.size();
  const std::int64_t floor = plan_.floor(section);
  bool may_be_empty = plan_.slack(section) > 0;
  for (const int* record = plan_.begin(section); record != plan_.end(section); ++record) {
    if (!plan_.is_option(*record, floor)) continue;
    if (sections_.records[*record].fixed >= 0) may_be_empty = false;
    if (!plan_.is_redundant(*record)) options_.push_back(*record);
  }
  const std::vector<double>& priorities = guidance_->priorities;
  std::sort(options_.begin() + static_cast<std::ptrdiff_t>(begin), options_.end(),
            [&](int a, int b) {
              return priorities[a] != priorities[b] ? priorities[a] > priorities[b] : a < b;
            });
  frames_.push_back(
      {piece, section, split, begin, begin, options_.size(), may_be_empty, plan_.mark()});
  return Opened::kFrame;
}

// Returns the section whose floor is decided next, -1 when nothing waits in the piece.
int ExactSearch::choose(Piece piece) {
  int best = -1;
  for (int s = piece.first; s < piece.last; ++s) {
    if (!plan_.is_done(s) && (best < 0 || is_better(s, best))) best = s;
  }
  return best < 0 ? best : descend(best);
}

bool ExactSearch::is_better(int section, int than) const {
  using Pick = Guidance::Pick;
  const Pick pick = guidance_->pick;
  if (pick == Pick::kLowestTightest || pick == Pick::kLowestFewest) {
    const std::int64_t floor = plan_.floor(section);
    if (floor != plan_.floor(than)) return floor < plan_.floor(than);
  } else {
    if (plan_.num_options(section) == 0) return false;
    if (plan_.num_options(than) == 0) return true;
  }
  const std::int64_t slack = plan_.slack(section);
  const std::int64_t other_slack = plan_.slack(than);
  const int possibilities = plan_.num_options(section) + (slack > 0 ? 1 : 0);
  const int other_possibilities = plan_.num_options(than) + (other_slack > 0 ? 1 : 0);
  if (pick == Pick::kTightest || pick == Pick::kLowestTightest) {
    return slack != other_slack ? slack < other_slack : possibilities < other_possibilities;
  }
  return possibilities != other_possibilities ? possibilities < other_possibilities
                                              : slack < other_slack;
}

// Returns the section, or a lower one beside it where something may come below what could
// lie at its floor.
int ExactSearch::descend(int section) const {
  for (bool moved = true; moved;) {
    moved = false;
    const std::int64_t floor = plan_.floor(section);
    for (const int* at = plan_.begin(section); at != plan_.end(section) && !moved; ++at) {
      if (plan_.low(*at) != floor) continue;
      const Sections::Record& record = sections_.records[*at];
      for (int s = record.first; s < record.last && !moved; ++s) {
        if (plan_.floor(s) < floor && !plan_.is_done(s)) {
          section = s;
          moved = true;
        }
      }
    }
  }
  return section;
}

// Whether something is known not to lie at the floor it sets.
bool ExactSearch::has_stale_floor(int section) const {
  const std::int64_t floor = plan_.floor(section);
  return std::any_of(plan_.begin(section), plan_.end(section), [&](int record) {
    return plan_.low(record) == floor && !plan_.is_option(record, floor);
  });
}

}  // namespace arenite
