// The records of a plan as a program has them: packed, the first to live first.
#pragma once

#include <cstdint>
#include <vector>

#include "program_generated.h"

namespace arenite {

// A usage record of the plan: a range of bytes for a range of turns.
struct Record {
  const program::Owner* owner = nullptr;
  std::uint64_t offset = 0;  // bytes
  std::uint64_t size = 0;    // bytes
  std::uint32_t start = 0;   // first turn; without turns, steps are counted
  std::uint32_t end = 0;     // first turn after

  std::size_t memory() const { return owner->memory(); }
};

// Reads packed records one after another, without unpacking them all.
class RecordCursor {
 public:
  explicit RecordCursor(const program::Program& program);

  // Advances to the next record, or to the first one; returns false after the last. Throws
  // ProgramError if the bytes are damaged.
  bool next();
  const Record& operator*() const { return record_; }
  const Record* operator->() const { return &record_; }

 private:
  // Where the last record of an owner lies.
  struct Last {
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
  };

  std::uint64_t number();
  // To be added, modulo 2^64.
  std::uint64_t difference();

  const program::Program& program_;
  flatbuffers::uoffset_t place_ = 0;
  std::vector<Last> last_;  // by owner
  Record record_;
};

}  // namespace arenite
