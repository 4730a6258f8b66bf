#include "stages.hpp"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>

#include "checking.hpp"
#include "turns.hpp"

namespace arenite {

namespace {

using flatbuffers::uoffset_t;
using program::Program;

// More than any system has; a schedule within a schedule takes a level of the stack of a reader.
constexpr std::size_t kMaxStages = 256;

std::vector<StageRanges> ranges_of(const Program& program) {
  std::vector<StageRanges> found;
  StageRanges last{};
  const auto next = [](Span before, std::uint32_t size) {
    return Span{before.end, before.end + size};
  };
  for (std::size_t i = 0; i < count(program.stages()); ++i) {
    const auto& stage = *program.stages()->Get(static_cast<uoffset_t>(i));
    last = {next(last.turns, stage.turns()), next(last.inputs, stage.inputs()),
            next(last.outputs, stage.outputs())};
    found.push_back(last);
  }
  return found;
}

void check_output(std::uint32_t output, Span allowed, const std::string& what) {
  if (output < allowed.first || output >= allowed.end) {
    refuse(what + " output " + std::to_string(output) + ", expected " +
           std::to_string(allowed.first) + " to " + std::to_string(allowed.end));
  }
}

void check_outputs_named(const program::Stage& stage, Span outputs, const std::string& label) {
  for (std::size_t i = 0; i < count(stage.reads()); ++i) {
    check_output(stage.reads()->Get(static_cast<uoffset_t>(i)), {0, outputs.first},
                 label + " reads");
  }
  for (std::size_t i = 0; i < count(stage.keeps()); ++i) {
    check_output(stage.keeps()->Get(static_cast<uoffset_t>(i)), outputs, label + " keeps");
  }
}

void check_count(std::size_t stated, std::size_t left, const std::string& label, const char* what) {
  if (stated > left) {
    refuse(label + " has " + std::to_string(stated) + " " + what + " of " + std::to_string(left) +
           " that are left");
  }
}

void check_schedule(const Program& program) {
  const std::size_t num_stages = count(program.stages());
  const std::size_t num_sections = count(program.schedule());
  if (num_sections == 0 || num_sections > kMaxStages) {
    refuse("the schedule has " + std::to_string(num_sections) + " sections, expected 1 to " +
           std::to_string(kMaxStages));
  }
  std::vector<bool> stages(num_stages);
  std::vector<bool> sections(num_sections);
  sections[0] = true;
  for (std::size_t i = 0; i < num_sections; ++i) {
    const auto& section = *program.schedule()->Get(static_cast<uoffset_t>(i));
    const std::string label = "section " + std::to_string(i) + " of the schedule";
    if (section.kind() > program::SectionKind::MAX) { refuse(label + " is of an unknown kind"); }
    if (count(section.parts()) == 0) { refuse(label + " is empty"); }
    for (std::size_t k = 0; k < count(section.parts()); ++k) {
      const std::int64_t part = section.parts()->Get(static_cast<uoffset_t>(k));
      auto& seen = part < 0 ? sections : stages;
      const auto number = static_cast<std::size_t>(part < 0 ? -1 - part : part);
      if (number >= seen.size() || seen[number] || (part < 0 && number <= i)) {
        refuse(label + " has a part " + std::to_string(part) +
               ", which is none or occurs more than once");
      }
      seen[number] = true;
    }
  }
  if (!std::all_of(stages.begin(), stages.end(), [](bool each) { return each; }) ||
      !std::all_of(sections.begin(), sections.end(), [](bool each) { return each; })) {
    refuse("the schedule leaves out a stage or a section");
  }
}

}  // namespace

void check_stages(const Program& program) {
  const std::size_t num_stages = count(program.stages());
  if (num_stages == 0) {
    if (count(program.schedule()) != 0) { refuse("there is a schedule, and no stage"); }
    return;
  }
  if (num_stages > kMaxStages) {
    refuse("the program has " + std::to_string(num_stages) + " stages, expected at most " +
           std::to_string(kMaxStages));
  }
  const std::size_t turns = num_turns(program);
  const std::size_t inputs = program.inputs()->size();
  const std::size_t outputs = program.outputs()->size();
  std::set<std::string> names;
  const auto ranges = ranges_of(program);
  for (std::size_t i = 0; i < num_stages; ++i) {
    const auto& stage = *program.stages()->Get(static_cast<uoffset_t>(i));
    const std::string label = "stage " + quoted(stage.name());
    if (!names.insert(stage.name()->str()).second) { refuse(label + " has a duplicate name"); }
    if (stage.turns() == 0) { refuse(label + " has no turn"); }
    // So that no sum of several overflows.
    check_count(stage.turns(), turns - ranges[i].turns.first, label, "turns");
    check_count(stage.inputs(), inputs - ranges[i].inputs.first, label, "inputs");
    check_count(stage.outputs(), outputs - ranges[i].outputs.first, label, "outputs");
    check_outputs_named(stage, ranges[i].outputs, label);
  }
  const StageRanges& last = ranges.back();
  if (last.turns.end != turns || last.inputs.end != inputs || last.outputs.end != outputs) {
    refuse("the stages leave out turns, inputs or outputs of the program");
  }
  check_schedule(program);
}

std::vector<StageRanges> stages_of(const Program& program) {
  if (count(program.stages()) != 0) { return ranges_of(program); }
  return {{{0, std::max<std::size_t>(num_turns(program), 1)},
           {0, program.inputs()->size()},
           {0, program.outputs()->size()}}};
}

}  // namespace arenite
