#include "poison.hpp"

#include <algorithm>
#include <cstring>

namespace arenite {

Poison::Poison(const program::Program& program, const std::vector<Arena>& arenas, std::uint8_t byte)
    : program_(program), arenas_(arenas), byte_(byte) {
  const std::size_t num_steps = std::max<std::size_t>(program.steps()->size(), 1);
  starting_.resize(num_steps);
  ending_.resize(num_steps);
  const auto& records = *program.records();
  for (std::uint32_t i = 0; i < records.size(); ++i) {
    const auto* record = records.Get(i);
    // Others must not find what the caller put there changed.
    if (program.memories()->Get(record->memory())->writable()) {
      starting_[record->start()].push_back(i);
      ending_[record->end() - 1].push_back(i);
    }
  }
}

void Poison::before(std::size_t step) const {
  if (step > 0) {
    fill(starting_[step]);
  }
}

void Poison::after(std::size_t step) const {
  if (step + 1 < ending_.size()) {
    fill(ending_[step]);
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
