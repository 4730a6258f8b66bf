#include "turns.hpp"

#include <limits>
#include <string>

#include "checking.hpp"

namespace arenite {

namespace {

// More than any program has; a file of few bytes could make work for hours.
constexpr std::uint64_t kMaxTurns = std::uint64_t{1} << 20;

void check_rows(const program::Turn& turn, std::uint32_t times, const std::string& label) {
  const std::int64_t last =
      std::int64_t{turn.first()} + std::int64_t{turn.stride()} * (std::int64_t{times} - 1);
  if (last < 0 || last > std::int64_t{std::numeric_limits<std::uint32_t>::max()}) {
    refuse(label + " reaches row " + std::to_string(last));
  }
}

}  // namespace

void check_loops(const program::Program& program) {
  const std::size_t stated = count(program.turns());
  std::uint64_t total = 0;
  std::uint64_t begin = 0;
  for (std::size_t i = 0; i < count(program.loops()); ++i) {
    const auto& loop = *program.loops()->Get(static_cast<flatbuffers::uoffset_t>(i));
    const std::string label = "loop " + std::to_string(i);
    if (loop.turns() == 0 || loop.times() == 0) { refuse(label + " has no turns"); }
    if (loop.turns() > stated - begin) { refuse(label + " has more turns than there are"); }
    total += std::uint64_t{loop.turns()} * loop.times();
    if (total > kMaxTurns) {
      refuse(label + " makes more than " + std::to_string(kMaxTurns) + " turns of the program");
    }
    for (std::uint32_t each = 0; each < loop.turns(); ++each) {
      const auto number = static_cast<flatbuffers::uoffset_t>(begin + each);
      check_rows(*program.turns()->Get(number), loop.times(), label);
    }
    begin += loop.turns();
  }
  if (begin != stated) {
    refuse("the loops have " + std::to_string(begin) + " of " + std::to_string(stated) + " turns");
  }
}

std::size_t num_turns(const program::Program& program) {
  if (!has_turns(program)) { return program.steps()->size(); }
  std::size_t total = 0;
  for (const auto* loop : *program.loops()) { total += std::size_t{loop->turns()} * loop->times(); }
  return total;
}

TurnCursor::TurnCursor(const program::Program& program, std::size_t index,
                       const std::vector<std::uint32_t>* rounds)
    : program_(program), rounds_(rounds), index_(index), end_(num_turns(program)) {
  if (!has_turns(program)) { return; }
  for (std::size_t left = index; loop_ < program.loops()->size(); ++loop_) {
    const auto& loop = *program.loops()->Get(loop_);
    const std::size_t turns = std::size_t{loop.turns()} * loop.times();
    if (left < turns) {
      place_ = static_cast<flatbuffers::uoffset_t>(left % loop.turns());
      round_ = static_cast<std::uint32_t>(left / loop.turns());
      return;
    }
    left -= turns;
    begin_ += loop.turns();
  }
}

RunTurn TurnCursor::operator*() const {
  if (!has_turns(program_)) { return {static_cast<std::uint32_t>(index_), 0, 0}; }
  const auto& turn = *program_.turns()->Get(begin_ + place_);
  const std::int64_t first = std::int64_t{turn.first()} + std::int64_t{turn.stride()} * round_;
  return {turn.step(), static_cast<std::uint32_t>(first), turn.count()};
}

void TurnCursor::next() {
  ++index_;
  if (!has_turns(program_)) { return; }
  const auto& loop = *program_.loops()->Get(loop_);
  if (++place_ < loop.turns()) { return; }
  place_ = 0;
  ++round_;
  if (round_ < (rounds_ == nullptr ? loop.times() : (*rounds_)[loop_])) { return; }
  index_ += std::size_t{loop.times() - round_} * loop.turns();
  round_ = 0;
  begin_ += loop.turns();
  ++loop_;
}

}  // namespace arenite
