// The sets of executed operators that a search of orders has reached after so many steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace arenite {

// How a set was reached: from which set of the table before, by which operator.
struct Move {
  std::uint32_t parent;
  std::int32_t operator_index;
};

// What is known of a set.
struct State {
  std::int64_t load;  // bytes live between two steps; follows from the set
  std::int64_t peak;  // least over the orders seen
  std::uint64_t key;  // hash of the set
  Move move;          // the last of the order with that peak
};

// Different sets, each with the lowest peak that was added for it. Nothing moves when it
// grows, so that it takes no more memory then than when it is full.
class StateTable {
 public:
  static constexpr std::size_t kMostStates = 0xFFFF'FFF0u;  // an index has 32 bits

  explicit StateTable(std::size_t num_words) : num_words_(num_words) {}

  // Returns the bytes that a table takes for a state at most, while it grows too.
  static constexpr std::int64_t bytes_per_state(std::size_t num_words) {
    constexpr std::int64_t kSlots = 16;  // see `grow_slots`
    return static_cast<std::int64_t>(sizeof(State) + num_words * sizeof(std::uint64_t)) + kSlots;
  }

  std::size_t size() const { return size_; }
  const State& state(std::size_t index) const {
    return chunks_[index / kPerChunk].states[index % kPerChunk];
  }
  const std::uint64_t* set(std::size_t index) const {
    return &chunks_[index / kPerChunk].words[index % kPerChunk * num_words_];
  }

  // Adds a set; of one that is there already the lower peak stays.
  void add(const std::uint64_t* set, const State& state);
  // Returns the `width` states with the least (peak, load), earlier ones first among equals.
  StateTable lowest(std::size_t width) const;
  // Returns how each set was reached.
  std::vector<Move> moves() const;

 private:
  static constexpr std::size_t kPerChunk = 256;
  static constexpr std::uint32_t kFree = 0xFFFF'FFFFu;

  struct Chunk {
    std::unique_ptr<State[]> states;
    std::unique_ptr<std::uint64_t[]> words;
  };

  void grow_slots();

  std::size_t num_words_;
  std::size_t size_ = 0;
  std::vector<Chunk> chunks_;
  std::vector<std::uint32_t> slots_;  // indices of states where their keys put them, or kFree
};

}  // namespace arenite
