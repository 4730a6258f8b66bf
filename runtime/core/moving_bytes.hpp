// Bytes that issued steps of another lane may still read or write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "live_records.hpp"

namespace arenite {

// Remembers for each byte when its last reader and its last writer were issued. A lane runs steps
// in order, so when that step is done, those before it are done too.
class MovingBytes {
 public:
  explicit MovingBytes(std::size_t num_memories) : read_(num_memories), written_(num_memories) {}

  void note_read(const Extent& extent, std::size_t turn) { note(read_, extent, turn); }
  void note_written(const Extent& extent, std::size_t turn) { note(written_, extent, turn); }

  // Whether a step that was issued at turn `done` or later reads some of the bytes.
  //
  // Forgets finished steps on the way, so that all calls together cost no more than the notes.
  bool are_read(const Extent& extent, std::size_t done) { return is_any(read_, extent, done); }
  bool are_written(const Extent& extent, std::size_t done) {
    return is_any(written_, extent, done);
  }

 private:
  struct Stretch {
    std::uint64_t end;  // byte
    std::size_t turn;
  };
  // By where they begin, memory by memory; no two share bytes.
  using Stretches = std::vector<std::map<std::uint64_t, Stretch>>;

  static void note(Stretches& all, const Extent& extent, std::size_t turn);
  static bool is_any(Stretches& all, const Extent& extent, std::size_t done);

  Stretches read_;
  Stretches written_;
};

}  // namespace arenite
