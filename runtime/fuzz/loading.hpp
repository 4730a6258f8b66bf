// A program file in memory, loaded and run as hostile as it is.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "errors.hpp"
#include "mapped_file.hpp"
#include "session.hpp"
#include "sizes.hpp"

namespace fuzz {

using arenite::MappedFile;

// Larger ones are refused by the machine, not by the loader.
inline constexpr std::size_t kLargestArena = std::size_t{1} << 26;

// Bytes at the alignment that a file in memory must have.
class Bytes {
 public:
  Bytes(const void* content, std::size_t size) : size_(size) {
    const std::size_t room =
        (size_ + MappedFile::kAlignment) / MappedFile::kAlignment * MappedFile::kAlignment;
    data_ = static_cast<std::byte*>(std::aligned_alloc(MappedFile::kAlignment, room));
    std::memcpy(data_, content, size_);
  }
  ~Bytes() { std::free(data_); }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;

  const std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  std::byte* data_;
  std::size_t size_;
};

// Runs a session of a program for a range of sizes at others of them, as far as it takes these.
inline void resize(arenite::Session& session) {
  const auto& program = session.file().program();
  if (!arenite::has_dimensions(program)) { return; }
  const auto highest = arenite::highest_sizes(program);
  auto sizes = arenite::lowest_sizes(program);
  for (int round = 0; round < 3; ++round) {
    try {
      session.resize(sizes);
      session.run(0, session.num_turns());
    } catch (const arenite::ProgramError&) {
    } catch (const arenite::SizeRangeError&) {}
    for (std::size_t i = 0; i < sizes.size(); ++i) { sizes[i] += (highest[i] - sizes[i]) / 3 + 1; }
  }
}

// Loads a file, and runs it if it loads; tells whether it ran. Files are refused with ProgramError
// or SystemError: anything else that is thrown is a fault.
inline bool runs(const void* content, std::size_t size) {
  const Bytes bytes(content, size);
  try {
    const auto file = std::make_shared<const MappedFile>(bytes.data(), bytes.size());
    for (const auto* memory : *file->program().memories()) {
      if (memory->size() > kLargestArena) { return false; }
    }
    arenite::Session session(file, {});
    for (std::size_t step = 0; step < session.num_steps(); ++step) {
      if (session.step(step) == nullptr) { return false; }
    }
    session.run(0, session.num_turns());
    resize(session);
    return true;
  } catch (const arenite::ProgramError&) {
  } catch (const arenite::SystemError&) {}
  return false;
}

}  // namespace fuzz
