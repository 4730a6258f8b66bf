#include "subranges.hpp"

#include <algorithm>
#include <string>

#include "lanes.hpp"
#include "sizes.hpp"

namespace arenite {

namespace {

using program::Program;
using Ports = flatbuffers::Vector<flatbuffers::Offset<program::Port>>;

constexpr std::size_t kMaxSubranges = 16;

// Refuses what is kept from one run to the next, or is at work when the sizes change.
void require_plain(const Program& program, const std::string& label) {
  bool is_allowed = has_dimensions(program) && is_plain(program);
  for (flatbuffers::uoffset_t i = 0; is_allowed && i < program.dimensions()->size(); ++i) {
    const auto& each = *program.dimensions()->Get(i);
    is_allowed = !is_counted(each) && !grows(each);
  }
  if (!is_allowed) {
    refuse(label +
           " has no dimensions, or has states, stages, lanes, steps of another runtime, or sizes "
           "that are counted");
  }
}

// `above` is what has the next higher sizes.
void require_below(const Program& part, const Program& above, const std::string& label) {
  const std::size_t stated = count(above.dimensions());
  bool is_below = count(part.dimensions()) == stated;
  bool is_lower = false;
  for (flatbuffers::uoffset_t i = 0; is_below && i < stated; ++i) {
    const auto& one = *part.dimensions()->Get(i);
    const auto& other = *above.dimensions()->Get(i);
    is_below = one.name()->string_view() == other.name()->string_view() &&
               one.low() == other.low() && one.step() == other.step() && one.high() <= other.high();
    is_lower = is_lower || one.high() < other.high();
  }
  if (!is_below || !is_lower) {
    refuse(label +
           " has other dimensions than the program of the next higher sizes, or no lower sizes");
  }
}

void require_memories(const Program& part, const Program& whole, const std::string& label) {
  bool has_room = part.memories()->size() == whole.memories()->size() &&
                  part.weights_size() == whole.weights_size();
  for (flatbuffers::uoffset_t i = 0; has_room && i < whole.memories()->size(); ++i) {
    const auto& one = *part.memories()->Get(i);
    const auto& other = *whole.memories()->Get(i);
    has_room = one.size() <= other.size() && one.alignment() <= other.alignment() &&
               one.writable() == other.writable() && !one.spilled() && !other.spilled();
  }
  if (!has_room) { refuse(label + " has other memories or weights than the program, or larger"); }
}

void require_ports(const Program& part, const Ports& ports, const Program& whole,
                   const Ports& stated, const std::string& label) {
  bool is_alike = ports.size() == stated.size();
  for (flatbuffers::uoffset_t i = 0; is_alike && i < stated.size(); ++i) {
    const auto& one = *ports.Get(i);
    const auto& other = *stated.Get(i);
    const auto tensor = static_cast<std::uint32_t>(one.tensor());
    const auto same = static_cast<std::uint32_t>(other.tensor());
    is_alike = one.name()->string_view() == other.name()->string_view() &&
               tensor < part.tensors()->size() &&
               part.tensors()->Get(tensor)->type() == whole.tensors()->Get(same)->type() &&
               count(one.permutation()) == count(other.permutation()) &&
               (other.permutation() == nullptr ||
                std::equal(one.permutation()->begin(), one.permutation()->end(),
                           other.permutation()->begin()));
  }
  if (!is_alike) { refuse(label + " has other inputs or outputs than the program"); }
}

}  // namespace

bool is_plain(const Program& program) {
  bool found = count(program.states()) == 0 && count(program.stages()) == 0 &&
               count(program.schedule()) == 0;
  for (const auto* step : *program.steps()) {
    found = found && !runs_beside(*step) && count(step->awaits()) == 0 &&
            step->kernel_type() != program::Operator::External;
  }
  return found;
}

void check_subranges(const Program& program) {
  const std::size_t stated = num_subranges(program);
  if (stated == 0) { return; }
  if (stated > kMaxSubranges) {
    refuse("a program has at most " + std::to_string(kMaxSubranges) + " subranges, not " +
           std::to_string(stated));
  }
  require_plain(program, "a program with subranges");
  for (std::size_t i = 0; i < stated; ++i) {
    const auto& part = *program.subranges()->Get(static_cast<flatbuffers::uoffset_t>(i));
    const auto& above = i + 1 == stated
                            ? program
                            : *program.subranges()->Get(static_cast<flatbuffers::uoffset_t>(i + 1));
    const std::string label = "subrange " + std::to_string(i);
    if (num_subranges(part) != 0) { refuse(label + " has subranges itself"); }
    require_plain(part, label);
    require_below(part, above, label);
    require_memories(part, program, label);
    require_ports(part, *part.inputs(), program, *program.inputs(), label);
    require_ports(part, *part.outputs(), program, *program.outputs(), label);
  }
}

std::size_t subrange_with(const Program& program, const std::vector<std::int64_t>& sizes) {
  const std::size_t stated = num_subranges(program);
  for (std::size_t i = 0; i < stated; ++i) {
    const auto& ranges =
        *program.subranges()->Get(static_cast<flatbuffers::uoffset_t>(i))->dimensions();
    bool has_sizes = sizes.size() == ranges.size();
    for (std::size_t each = 0; has_sizes && each < sizes.size(); ++each) {
      const auto& range = *ranges.Get(static_cast<flatbuffers::uoffset_t>(each));
      has_sizes = sizes[each] <= static_cast<std::int64_t>(range.high());
    }
    if (has_sizes) { return i; }
  }
  return stated;
}

}  // namespace arenite
