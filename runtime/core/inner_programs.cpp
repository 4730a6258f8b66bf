#include "inner_programs.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include "sizes.hpp"
#include "subranges.hpp"
#include "validation.hpp"

namespace arenite {

namespace {

using program::Program;

void require_plain(const Program& part, const Program& whole, const std::string& label) {
  if (part.memories()->size() != 1 || part.memories()->Get(0)->spilled() ||
      !part.memories()->Get(0)->writable()) {
    refuse(label + " has other memories than one that it writes");
  }
  if (part.weights_size() != whole.weights_size()) {
    refuse(label + " has other weights than the program");
  }
  if (!is_plain(part) || has_dimensions(part) || num_subranges(part) != 0) {
    refuse(label + " has dimensions, states, stages, subranges, lanes or steps of another runtime");
  }
}

}  // namespace

void check_inner_programs(const Program& program, std::size_t depth) {
  std::vector<bool> is_used(num_inner(program));
  for (const auto* step : *program.steps()) {
    const auto* loop = step->kernel_as_While();
    if (loop == nullptr) { continue; }
    for (const std::uint32_t index : {loop->condition(), loop->body()}) {
      const std::string label = "step " + quoted(step->name());
      if (index >= is_used.size()) {
        refuse(label + " runs inner program " + std::to_string(index) + " of " +
               std::to_string(is_used.size()));
      }
      if (is_used[index]) {
        refuse(label + " runs inner program " + std::to_string(index) + ", which is another's");
      }
      is_used[index] = true;
    }
  }
  for (std::size_t i = 0; i < is_used.size(); ++i) {
    const std::string label = "inner program " + std::to_string(i);
    if (!is_used[i]) { refuse(label + " is of no step"); }
    if (depth == kMaxInnerDepth) {
      refuse(label + " lies more than " + std::to_string(kMaxInnerDepth) + " programs deep");
    }
    const auto& part = *program.inner()->Get(static_cast<flatbuffers::uoffset_t>(i));
    require_plain(part, program, label);
  }
  if (!is_used.empty() && has_dimensions(program)) {
    refuse("a program with dimensions has inner programs");
  }
}

void validate_inner_programs(const Program& program, std::size_t depth) {
  check_inner_programs(program, depth);
  for (std::size_t i = 0; i < num_inner(program); ++i) {
    const auto& part = *program.inner()->Get(static_cast<flatbuffers::uoffset_t>(i));
    std::vector<Room> rooms;
    validated_tensors(part, rooms);
    validate_inner_programs(part, depth + 1);
  }
}

}  // namespace arenite
