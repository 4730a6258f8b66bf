#include "live_records.hpp"

#include <algorithm>
#include <iterator>
#include <string>

#include "errors.hpp"

namespace arenite {

LiveRecords::LiveRecords(const program::Program& program)
    : program_(program), live_(program.memories()->size()), permanent_(program.memories()->size()) {
  const std::size_t num_steps = std::max<std::size_t>(program.steps()->size(), 1);
  starting_.resize(num_steps);
  ending_.resize(num_steps + 1);
  const auto& records = *program.records();
  for (Index i = 0; i < records.size(); ++i) {
    const auto& record = *records.Get(i);
    const std::string label = "record '" + record.name()->str() + "'";
    if (record.start() >= record.end() || record.end() > num_steps) {
      throw ProgramError(label + " lives at steps " + std::to_string(record.start()) + " to " +
                         std::to_string(record.end()) + " of " + std::to_string(num_steps));
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
    if (record.start() == 0 && record.end() == num_steps) {
      permanent_[record.memory()].emplace(record.offset(), record.offset() + record.size());
    }
  }
}

void LiveRecords::enter(std::size_t step) {
  const auto& records = *program_.records();
  if (step < ending_.size()) {
    for (const auto i : ending_[step]) {
      const auto& record = *records.Get(i);
      live_[record.memory()].erase(record.offset());
    }
  }
  if (step >= starting_.size()) {
    return;
  }
  for (const auto i : starting_[step]) {
    const auto& record = *records.Get(i);
    auto& live = live_[record.memory()];
    const std::uint64_t begin = record.offset();
    const std::uint64_t end = begin + record.size();
    const auto above = live.lower_bound(begin);
    const bool hits_above = above != live.end() && above->first < end;
    const bool hits_below = above != live.begin() && std::prev(above)->second > begin;
    if (hits_above || hits_below) {
      throw ProgramError("record '" + record.name()->str() +
                         "' shares bytes with another at step " + std::to_string(step) +
                         ": the plan is wrong, plan the model again");
    }
    live.emplace(begin, end);
  }
}

bool LiveRecords::holds(const Ends& ends, const Extent& extent) {
  const auto above = ends.upper_bound(extent.begin);
  return above != ends.begin() && std::prev(above)->second >= extent.end;
}

bool LiveRecords::hold(const Extent& extent) const { return holds(live_[extent.memory], extent); }

bool LiveRecords::hold_throughout(const Extent& extent) const {
  return holds(permanent_[extent.memory], extent);
}

}  // namespace arenite
