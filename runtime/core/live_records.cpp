#include "live_records.hpp"

#include <algorithm>
#include <iterator>
#include <string>

#include "errors.hpp"
#include "turns.hpp"

namespace arenite {

LiveRecords::LiveRecords(const program::Program& program)
    : program_(program),
      num_turns_(std::max<std::size_t>(num_turns(program), 1)),
      next_(program),
      live_(program.memories()->size()) {
  for (RecordCursor record(program); record.next();) {
    const std::string label = "record '" + record->owner->name()->str() + "'";
    if (record->start >= record->end || record->end > num_turns_) {
      throw ProgramError(label + " lives at " + turn_word(program) + "s " +
                         std::to_string(record->start) + " to " + std::to_string(record->end) +
                         " of " + std::to_string(num_turns_));
    }
    if (record->memory() >= program.memories()->size()) {
      throw ProgramError(label + " lies in memory " + std::to_string(record->memory()) + " of " +
                         std::to_string(program.memories()->size()));
    }
    const auto& memory =
        *program.memories()->Get(static_cast<flatbuffers::uoffset_t>(record->memory()));
    if (record->size == 0 || record->size > memory.size() ||
        record->offset > memory.size() - record->size) {
      throw ProgramError(label + " lies outside the " + std::to_string(memory.size()) +
                         " B of memory '" + memory.name()->str() + "'");
    }
  }
  has_next_ = next_.next();
}

void LiveRecords::enter(std::size_t turn) {
  for (; !dying_.empty() && std::get<0>(dying_.top()) <= turn; dying_.pop()) {
    const auto [until, memory, begin] = dying_.top();
    live_[memory].erase(begin);
  }
  for (; has_next_ && next_->start <= turn; has_next_ = next_.next()) {
    auto& live = live_[next_->memory()];
    const std::uint64_t begin = next_->offset;
    const std::uint64_t end = begin + next_->size;
    const auto above = live.lower_bound(begin);
    const bool hits_above = above != live.end() && above->first < end;
    const bool hits_below = above != live.begin() && std::prev(above)->second.end > begin;
    if (hits_above || hits_below) {
      throw ProgramError("record '" + next_->owner->name()->str() +
                         "' shares bytes with another at " + turn_word(program_) + " " +
                         std::to_string(turn) + ": the plan is wrong, plan the model again");
    }
    live.emplace(begin, Life{end, next_->end});
    dying_.emplace(next_->end, next_->memory(), begin);
  }
}

std::size_t LiveRecords::held_until(const Extent& extent) const {
  const Lives& live = live_[extent.memory];
  auto above = live.upper_bound(extent.begin);
  if (above == live.begin()) { return 0; }
  auto [covered, until] = std::prev(above)->second;
  for (; covered < extent.end && above != live.end() && above->first == covered; ++above) {
    covered = above->second.end;
    until = std::min(until, above->second.until);
  }
  return covered >= extent.end ? until : 0;
}

Room LiveRecords::room_around(const Extent& extent) const {
  const Lives& live = live_[extent.memory];
  auto above = live.upper_bound(extent.begin);
  auto below = std::prev(above);
  Room room{below->first, below->second.end};
  for (; above != live.end() && above->first == room.high; ++above) {
    room.high = above->second.end;
  }
  for (; below != live.begin() && std::prev(below)->second.end == room.low; --below) {
    room.low = std::prev(below)->first;
  }
  return room;
}

bool LiveRecords::hold_throughout(const Extent& extent) const {
  return held_until(extent) == num_turns_;
}

}  // namespace arenite
