#include "poison.hpp"

#include <algorithm>
#include <cstring>

#include "turns.hpp"

namespace arenite {

Poison::Poison(const program::Program& program, const std::vector<Arena>& arenas, std::uint8_t byte)
    : program_(program), arenas_(arenas), byte_(byte) {
  const std::size_t num_turns = std::max<std::size_t>(arenite::num_turns(program), 1);
  starting_.resize(num_turns);
  ending_.resize(num_turns);
  const auto& records = *program.records();
  for (std::uint32_t i = 0; i < records.size(); ++i) {
    const auto* record = records.Get(i);
    // Others must not find what the caller put there changed; of a file there is nothing to fill.
    if (program.memories()->Get(record->memory())->writable() &&
        arenas[record->memory()].data() != nullptr) {
      starting_[record->start()].push_back(i);
      ending_[record->end() - 1].push_back(i);
    }
  }
}

void Poison::before(std::size_t turn) const {
  if (turn > 0) {
    fill(starting_[turn]);
  }
}

void Poison::after(std::size_t turn) const {
  if (turn + 1 < ending_.size()) {
    fill(ending_[turn]);
  }
}

void Poison::fill(const std::vector<std::uint32_t>& records) const {
  for (const auto index : records) {
    const auto& record = *program_.records()->Get(index);
    std::memset(arenas_[record.memory()].data() + record.offset(), byte_,
                static_cast<std::size_t>(record.size()));
  }
}

}  // namespace arenite
