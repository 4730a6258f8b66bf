#include "records.hpp"

#include <limits>
#include <string>

#include "checking.hpp"

namespace arenite {

namespace {

constexpr std::uint64_t kMaxTurn = std::numeric_limits<std::uint32_t>::max();

}  // namespace

RecordCursor::RecordCursor(const program::Program& program)
    : program_(program), last_(program.owners()->size()) {}

bool RecordCursor::next() {
  if (place_ == program_.records()->size()) { return false; }
  const std::uint64_t owner = number();
  if (owner >= last_.size()) {
    refuse("a record is of owner " + std::to_string(owner) + " of " + std::to_string(last_.size()));
  }
  const std::uint64_t start = record_.start + number();
  const std::uint64_t end = start + difference();
  if (start < record_.start || start > kMaxTurn || end > kMaxTurn) {
    refuse("the records are damaged: a lifetime is out of range");
  }
  Last& last = last_[static_cast<std::size_t>(owner)];
  last.size += difference();
  last.offset += difference();
  record_ = {program_.owners()->Get(static_cast<flatbuffers::uoffset_t>(owner)), last.offset,
             last.size, static_cast<std::uint32_t>(start), static_cast<std::uint32_t>(end)};
  return true;
}

// Seven bits a byte, the lowest first; the highest bit says that there are more.
std::uint64_t RecordCursor::number() {
  const auto& bytes = *program_.records();
  std::uint64_t found = 0;
  for (unsigned shift = 0; place_ < bytes.size() && shift < 64; shift += 7) {
    const std::uint64_t byte = bytes.Get(place_++);
    if (shift == 63 && byte > 1) { break; }
    found |= (byte & 0x7f) << shift;
    if (byte < 0x80) { return found; }
  }
  refuse("the records are damaged: a number is truncated");
}

std::uint64_t RecordCursor::difference() {
  const std::uint64_t found = number();
  return (found >> 1) ^ (~(found & 1) + 1);
}

}  // namespace arenite
