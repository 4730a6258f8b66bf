#include "live_records.hpp"

#include <algorithm>
#include <iterator>
#include <string>

#include "errors.hpp"
#include "turns.hpp"

namespace arenite {

LiveRecords::LiveRecords(const program::Program& program)
    : program_(program), live_(program.memories()->size()) {
  const std::size_t num_turns = std::max<std::size_t>(arenite::num_turns(program), 1);
  starting_.resize(num_turns);
  ending_.resize(num_turns + 1);
  const auto& records = *program.records();
  for (Index i = 0; i < records.size(); ++i) {
    const auto& record = *records.Get(i);
    const std::string label = "record '" + record.name()->str() + "'";
    if (record.start() >= record.end() || record.end() > num_turns) {
      throw ProgramError(label + " lives at " + turn_word(program) + "s " +
                         std::to_string(record.start()) + " to " + std::to_string(record.end()) +
                         " of " + std::to_string(num_turns));
    }
    if (record.memory() >= program.memories()->size()) {
      throw ProgramError(label + " lies in memory " + std::to_string(record.memory()) + " of " +
                         std::to_string(program.memories()->size()));
    }
    const auto& memory = *program.memories()->Get(record.memory());
    if (record.size() == 0 || record.size() > memory.size() ||
        record.offset() > memory.size() - record.size()) {
      throw ProgramError(label + " lies outside the " + std::to_string(memory.size()) +
                         " B of memory '" + memory.name()->str() + "'");
    }
    starting_[record.start()].push_back(i);
    ending_[record.end()].push_back(i);
  }
}

void LiveRecords::enter(std::size_t turn) {
  const auto& records = *program_.records();
  if (turn < ending_.size()) {
    for (const auto i : ending_[turn]) {
      const auto& record = *records.Get(i);
      live_[record.memory()].erase(record.offset());
    }
  }
  if (turn >= starting_.size()) {
    return;
  }
  for (const auto i : starting_[turn]) {
    const auto& record = *records.Get(i);
    auto& live = live_[record.memory()];
    const std::uint64_t begin = record.offset();
    const std::uint64_t end = begin + record.size();
    const auto above = live.lower_bound(begin);
    const bool hits_above = above != live.end() && above->first < end;
    const bool hits_below = above != live.begin() && std::prev(above)->second.end > begin;
    if (hits_above || hits_below) {
      throw ProgramError("record '" + record.name()->str() + "' shares bytes with another at " +
                         turn_word(program_) + " " + std::to_string(turn) +
                         ": the plan is wrong, plan the model again");
    }
    live.emplace(begin, Life{end, record.end()});
  }
}

std::size_t LiveRecords::held_until(const Extent& extent) const {
  const Lives& live = live_[extent.memory];
  auto above = live.upper_bound(extent.begin);
  if (above == live.begin()) {
    return 0;
  }
  auto [covered, until] = std::prev(above)->second;
  for (; covered < extent.end && above != live.end() && above->first == covered; ++above) {
    covered = above->second.end;
    until = std::min(until, above->second.until);
  }
  return covered >= extent.end ? until : 0;
}

bool LiveRecords::hold_throughout(const Extent& extent) const {
  return held_until(extent) == starting_.size();
}

}  // namespace arenite
