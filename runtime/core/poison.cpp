#include "poison.hpp"

#include <algorithm>
#include <cstring>

#include "records.hpp"
#include "stages.hpp"
#include "turns.hpp"

namespace arenite {

Poison::Poison(const program::Program& program, const std::vector<Arena>& arenas,
               const std::vector<TensorView>& tensors, std::uint8_t byte)
    : arenas_(arenas), byte_(byte) {
  const std::size_t num_turns = std::max<std::size_t>(arenite::num_turns(program), 1);
  starting_.resize(num_turns);
  ending_.resize(num_turns);
  for (RecordCursor record(program); record.next();) {
    // Others must not find what the caller put there changed; of a file there is nothing to fill.
    const auto memory = static_cast<flatbuffers::uoffset_t>(record->memory());
    if (program.memories()->Get(memory)->writable() && arenas[memory].data() != nullptr) {
      const Stretch stretch{memory, record->offset, record->size};
      starting_[record->start].push_back(stretch);
      ending_[record->end - 1].push_back(stretch);
    }
  }
  for (const auto& stage : stages_of(program)) {
    spare(starting_[stage.turns.first], program, *program.inputs(), stage.inputs, tensors);
    spare(ending_[stage.turns.end - 1], program, *program.outputs(), stage.outputs, tensors);
  }
}

void Poison::spare(std::vector<Stretch>& stretches, const program::Program& program,
                   const Ports& ports, Span some, const std::vector<TensorView>& tensors) {
  for (std::size_t i = some.first; i < some.end; ++i) {
    const auto tensor = ports.Get(static_cast<flatbuffers::uoffset_t>(i))->tensor();
    const auto& port = *program.tensors()->Get(static_cast<flatbuffers::uoffset_t>(tensor));
    const auto& view = tensors[static_cast<std::size_t>(tensor)];
    const auto holds_some = [&](const Stretch& each) {
      return !view.is_constant && each.memory == port.memory() &&
             each.offset < port.offset() + view.size && port.offset() < each.offset + each.size;
    };
    stretches.erase(std::remove_if(stretches.begin(), stretches.end(), holds_some),
                    stretches.end());
  }
}

void Poison::before(std::size_t turn) const {
  if (turn > 0) { fill(starting_[turn]); }
}

void Poison::after(std::size_t turn) const {
  if (turn + 1 < ending_.size()) { fill(ending_[turn]); }
}

void Poison::fill(const std::vector<Stretch>& stretches) const {
  for (const auto& each : stretches) {
    std::memset(arenas_[each.memory].data() + each.offset, byte_,
                static_cast<std::size_t>(each.size));
  }
}

}  // namespace arenite
