#include "state_table.hpp"

#include <algorithm>
#include <numeric>

namespace arenite {

void StateTable::add(const std::uint64_t* set, const State& state) {
  if (slots_.size() * 3 <= size_ * 4) grow_slots();
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = state.key & mask;
  for (; slots_[slot] != kFree; slot = (slot + 1) & mask) {
    const std::size_t index = slots_[slot];
    State& known = chunks_[index / kPerChunk].states[index % kPerChunk];
    if (known.key != state.key || !std::equal(set, set + num_words_, this->set(index))) continue;
    if (state.peak < known.peak) known = state;
    return;
  }
  slots_[slot] = static_cast<std::uint32_t>(size_);
  if (size_ % kPerChunk == 0) {
    chunks_.push_back(
        {std::unique_ptr<State[]>(new State[kPerChunk]),
         std::unique_ptr<std::uint64_t[]>(new std::uint64_t[kPerChunk * num_words_])});
  }
  Chunk& chunk = chunks_.back();
  chunk.states[size_ % kPerChunk] = state;
  std::copy(set, set + num_words_, &chunk.words[size_ % kPerChunk * num_words_]);
  ++size_;
}

// Doubles the slots, of which three in four are taken. While the old lie beside the new, that is
// 4/3 of a slot three times over for each state: 16 B.
void StateTable::grow_slots() {
  std::vector<std::uint32_t> slots(std::max<std::size_t>(16, 2 * slots_.size()), kFree);
  const std::size_t mask = slots.size() - 1;
  for (std::size_t index = 0; index < size_; ++index) {
    std::size_t slot = state(index).key & mask;
    while (slots[slot] != kFree) slot = (slot + 1) & mask;
    slots[slot] = static_cast<std::uint32_t>(index);
  }
  slots_ = std::move(slots);
}

StateTable StateTable::lowest(std::size_t width) const {
  std::vector<std::uint32_t> indices(size_);
  std::iota(indices.begin(), indices.end(), 0u);
  const auto better = [this](std::uint32_t a, std::uint32_t b) {
    const State& x = state(a);
    const State& y = state(b);
    if (x.peak != y.peak) return x.peak < y.peak;
    if (x.load != y.load) return x.load < y.load;
    return a < b;
  };
  if (width < size_) {
    std::nth_element(indices.begin(), indices.begin() + static_cast<std::ptrdiff_t>(width),
                     indices.end(), better);
    indices.resize(width);
  }
  std::sort(indices.begin(), indices.end(), better);
  StateTable kept(num_words_);
  for (const std::uint32_t index : indices) kept.add(set(index), state(index));
  return kept;
}

std::vector<Move> StateTable::moves() const {
  std::vector<Move> moves;
  moves.reserve(size_);
  for (std::size_t index = 0; index < size_; ++index) moves.push_back(state(index).move);
  return moves;
}

}  // namespace arenite
