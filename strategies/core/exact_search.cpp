#include "exact_search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

namespace arenite {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

std::int64_t align_up(std::int64_t value, std::int64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

}  // namespace

Sections::Sections(const std::vector<Lifetime>& lifetimes, std::vector<std::int64_t> sizes_in,
                   std::vector<std::int64_t> alignments_in)
    : sizes(std::move(sizes_in)), alignments(std::move(alignments_in)) {
  // A section ends where a record dies after one was born: what lives just before is a set
  // that no other set of records live together contains.
  struct Event {
    std::int64_t step;
    bool birth;  // deaths first: lifetimes are half-open
    int record;
    bool operator<(const Event& other) const {
      return std::tie(step, birth, record) < std::tie(other.step, other.birth, other.record);
    }
  };
  std::vector<Event> events;
  for (int record = 0; record < static_cast<int>(lifetimes.size()); ++record) {
    events.push_back({lifetimes[record].start, true, record});
    events.push_back({lifetimes[record].end, false, record});
  }
  std::sort(events.begin(), events.end());
  for (const Lifetime& lifetime : lifetimes) lengths.push_back(lifetime.end - lifetime.start);
  spans.assign(lifetimes.size(), {0, 0});
  int section = 0;
  bool born = false;
  for (const Event& event : events) {
    if (event.birth) {
      spans[event.record].first = section;
      born = true;
    } else {
      if (born) ++section;
      born = false;
      spans[event.record].last = section;
    }
  }
  members.resize(section);
  for (int record = 0; record < num_records(); ++record) {
    for (int s = spans[record].first; s < spans[record].last; ++s) members[s].push_back(record);
  }
  overlaps.resize(lifetimes.size());
  LiveIndex index(lifetimes);
  std::vector<int> met;
  for (int record = 0; record < num_records(); ++record) {
    index.collect(record, met);
    for (const int other : met) {
      overlaps[record].push_back(other);
      overlaps[other].push_back(record);
    }
    index.insert(record);
  }
  twin_before.assign(lifetimes.size(), -1);
  std::map<std::tuple<int, int, std::int64_t, std::int64_t>, int> last_of_kind;
  for (int record = 0; record < num_records(); ++record) {
    const auto kind = std::make_tuple(spans[record].first, spans[record].last, sizes[record],
                                      alignments[record]);
    const auto [entry, is_new] = last_of_kind.emplace(kind, record);
    if (!is_new) {
      twin_before[record] = entry->second;
      entry->second = record;
    }
  }
}

ExactSearch::ExactSearch(const Sections& sections, const Ranking& ranking, std::int64_t capacity,
                         std::int64_t max_nodes, const std::atomic<bool>& stop)
    : sections_(sections),
      ranking_(ranking),
      capacity_(capacity),
      max_nodes_(max_nodes),
      stop_(stop),
      rank_(sections.sizes.size(), 0),
      offsets_(sections.sizes.size(), 0),
      placed_(sections.sizes.size(), 0),
      waiting_(sections.members.size(), 0),
      floors_(sections.members.size(), 0),
      lowest_(sections.members.size(), -1),
      crossings_(sections.members.size(), 0),
      raised_at_(sections.sizes.size(), 0) {
  for (int record = 0; record < sections.num_records(); ++record) {
    const Sections::Span span = sections.spans[record];
    for (int s = span.first; s < span.last; ++s) waiting_[s] += sections.sizes[record];
    for (int s = span.first + 1; s < span.last; ++s) ++crossings_[s];
  }
  for (int s = 0; s < sections.num_sections(); ++s) lowest_[s] = sections.members[s].front();
}

Verdict ExactSearch::run() {
  for (int record = 0; record < sections_.num_records(); ++record) {
    if (sections_.sizes[record] > capacity_) return Verdict::kImpossible;
  }
  for (const std::int64_t bytes : waiting_) {
    if (bytes > capacity_) return Verdict::kImpossible;
  }
  Piece all{0, sections_.num_sections(), {}, sections_.num_records()};
  all.records.resize(sections_.sizes.size());
  for (int record = 0; record < all.count; ++record) all.records[record] = record;
  if (solve_parts(all, 0)) return Verdict::kFits;
  return gave_up_ ? Verdict::kUnknown : Verdict::kImpossible;
}

// Places the records of a piece, each at or above (last_offset, last_rank): in a solution
// sorted by that key every record lies at the least offset that those before it leave.
bool ExactSearch::solve(Piece& piece, std::int64_t last_offset, int last_rank) {
  if (piece.count == 0) return true;
  if (++num_nodes_ > max_nodes_ || stop_.load(std::memory_order_relaxed)) {
    gave_up_ = true;
    return false;
  }
  const std::size_t begin = candidates_.size();
  collect(piece, last_offset, last_rank);
  const std::size_t end = candidates_.size();
  bool solved = false;
  for (std::size_t next = begin; next < end && !solved && !gave_up_; ++next) {
    const int record = candidates_[next];
    const std::int64_t offset = offsets_[record];
    const std::size_t mark = trail_.size();
    const auto position = std::find(piece.records.begin(), piece.records.begin() + piece.count,
                                    record);
    const auto back = piece.records.begin() + piece.count - 1;
    std::iter_swap(position, back);
    --piece.count;
    if (place(piece, record)) {
      solved = cut_open_ ? solve_parts(piece, offset)
                         : solve(piece, offset, rank_[record]);
    }
    if (!solved) {
      undo_to(mark);
      ++piece.count;
      std::iter_swap(position, back);
    }
  }
  candidates_.resize(begin);
  return solved;
}

// Splits a piece where no unplaced record passes and solves the parts one by one.
bool ExactSearch::solve_parts(const Piece& piece, std::int64_t last_offset) {
  std::vector<Piece> parts;
  std::vector<int> part_of(piece.last - piece.first);
  for (int s = piece.first; s < piece.last; ++s) {
    if (s == piece.first || crossings_[s] == 0) parts.push_back({s, s, {}, 0});
    parts.back().last = s + 1;
    part_of[s - piece.first] = static_cast<int>(parts.size()) - 1;
  }
  for (int position = 0; position < piece.count; ++position) {
    const int record = piece.records[position];
    Piece& part = parts[part_of[sections_.spans[record].first - piece.first]];
    part.records.push_back(record);
    ++part.count;
  }
  // The fullest first: if one has no solution, this is the one.
  const auto fullness = [this](const Piece& part) {
    std::int64_t most = 0;
    for (int s = part.first; s < part.last; ++s) {
      most = std::max(most, floors_[s] + waiting_[s]);
    }
    return most;
  };
  std::stable_sort(parts.begin(), parts.end(), [&](const Piece& a, const Piece& b) {
    return fullness(a) > fullness(b);
  });
  std::vector<int> ranks;
  for (int position = 0; position < piece.count; ++position) {
    ranks.push_back(rank_[piece.records[position]]);
  }
  for (Piece& part : parts) {
    rank(part);
    if (!solve(part, last_offset, -1)) {
      for (int position = 0; position < piece.count; ++position) {
        rank_[piece.records[position]] = ranks[position];
      }
      return false;
    }
  }
  return true;
}

// Ranks the records of a piece anew, by what is still to be placed beside them.
void ExactSearch::rank(const Piece& piece) {
  struct Key {
    double product;
    double area;
    double lifetime;
    int record;
  };
  std::vector<Key> keys;
  for (int position = 0; position < piece.count; ++position) {
    const int record = piece.records[position];
    const Sections::Span span = sections_.spans[record];
    std::int64_t load = 0;
    for (int s = span.first; s < span.last; ++s) load = std::max(load, waiting_[s]);
    const double lifetime = static_cast<double>(sections_.lengths[record]);
    const double area = lifetime * static_cast<double>(sections_.sizes[record]);
    double product = ranking_.lifetime * std::log(lifetime) + ranking_.area * std::log(area) +
                     ranking_.load * std::log(static_cast<double>(load));
    if (!ranking_.factors.empty()) product += ranking_.factors[record];
    keys.push_back({product, area, lifetime, record});
  }
  std::sort(keys.begin(), keys.end(), [](const Key& a, const Key& b) {
    return std::tie(b.product, b.area, b.lifetime, a.record) <
           std::tie(a.product, a.area, a.lifetime, b.record);
  });
  for (std::size_t position = 0; position < keys.size(); ++position) {
    rank_[keys[position].record] = static_cast<int>(position);
  }
}

// Appends what may come next, the best first. A record that would leave room for another
// below it may not: the other could as well have come before.
void ExactSearch::collect(const Piece& piece, std::int64_t last_offset, int last_rank) {
  std::int64_t least_top = kNever;
  for (int position = 0; position < piece.count; ++position) {
    const int record = piece.records[position];
    least_top = std::min(least_top, offsets_[record] + sections_.sizes[record]);
  }
  const std::size_t begin = candidates_.size();
  for (int position = 0; position < piece.count; ++position) {
    const int record = piece.records[position];
    const std::int64_t offset = offsets_[record];
    if (offset >= least_top || offset < last_offset) continue;
    if (offset == last_offset && rank_[record] < last_rank) continue;
    const int twin = sections_.twin_before[record];
    if (twin >= 0 && !placed_[twin]) continue;
    candidates_.push_back(record);
  }
  std::sort(candidates_.begin() + static_cast<std::ptrdiff_t>(begin), candidates_.end(),
            [this](int a, int b) {
              return offsets_[a] != offsets_[b] ? offsets_[a] < offsets_[b] : rank_[a] < rank_[b];
            });
}

// Returns whether the rest may still fit.
bool ExactSearch::place(const Piece& piece, int record) {
  const std::int64_t offset = offsets_[record];
  const std::int64_t top = offset + sections_.sizes[record];
  const Sections::Span span = sections_.spans[record];
  ++placement_;
  raised_at_[record] = placement_;
  placed_[record] = 1;
  trail_.push_back({Change::kPlaced, record, 0, 0});
  cut_open_ = false;
  for (int s = span.first; s < span.last; ++s) waiting_[s] -= sections_.sizes[record];
  for (int s = span.first + 1; s < span.last; ++s) {
    if (--crossings_[s] == 0) cut_open_ = true;
  }
  if (top > capacity_) return false;
  for (const int other : sections_.overlaps[record]) {
    if (placed_[other]) continue;
    const std::int64_t least = align_up(top, sections_.alignments[other]);
    if (least <= offsets_[other]) continue;
    trail_.push_back({Change::kOffset, other, 0, offsets_[other]});
    offsets_[other] = least;
    raised_at_[other] = placement_;
    if (least + sections_.sizes[other] > capacity_) return false;
  }
  for (int s = piece.first; s < piece.last; ++s) {
    if (waiting_[s] == 0) continue;
    if (raised_at_[lowest_[s]] == placement_) {
      trail_.push_back({Change::kFloor, s, lowest_[s], floors_[s]});
      find_floor(s);
    }
    if (std::max(floors_[s], offset) + waiting_[s] > capacity_) return false;
  }
  return true;
}

void ExactSearch::find_floor(int section) {
  std::int64_t floor = kNever;
  int lowest = lowest_[section];
  for (const int record : sections_.members[section]) {
    if (!placed_[record] && offsets_[record] < floor) {
      floor = offsets_[record];
      lowest = record;
    }
  }
  floors_[section] = floor;
  lowest_[section] = lowest;
}

void ExactSearch::undo_to(std::size_t mark) {
  while (trail_.size() > mark) {
    const Change change = trail_.back();
    trail_.pop_back();
    switch (change.kind) {
      case Change::kOffset:
        offsets_[change.index] = change.value;
        break;
      case Change::kFloor:
        floors_[change.index] = change.value;
        lowest_[change.index] = change.lowest;
        break;
      case Change::kPlaced: {
        placed_[change.index] = 0;
        const Sections::Span span = sections_.spans[change.index];
        const std::int64_t size = sections_.sizes[change.index];
        for (int s = span.first; s < span.last; ++s) waiting_[s] += size;
        for (int s = span.first + 1; s < span.last; ++s) ++crossings_[s];
        break;
      }
    }
  }
}

}  // namespace arenite
