#include "session.hpp"

#include <utility>

#include "session_threads.hpp"
#include "sizes.hpp"
#include "subranges.hpp"

namespace arenite {

Session::Session(int descriptor, const SessionOptions& options)
    : Session(std::make_shared<const MappedFile>(descriptor), options) {}

Session::Session(std::shared_ptr<const MappedFile> file, const SessionOptions& options)
    : file_(std::move(file)) {
  const auto& program = file_->program();
  const auto threads = std::make_shared<SessionThreads>(options.threads);
  whole_ = std::make_unique<ProgramSession>(file_, program, threads, options);
  now_ = whole_.get();
  check_subranges(program);
  SessionOptions inside = options;
  inside.buffers.clear();
  for (const auto& arena : arenas()) {
    inside.buffers.push_back({arena.data(), arena.size() + Arena::kSlack});
  }
  for (std::size_t i = 0; i < num_subranges(program); ++i) {
    const auto& part = *program.subranges()->Get(static_cast<flatbuffers::uoffset_t>(i));
    subranges_.push_back(std::make_unique<ProgramSession>(file_, part, threads, inside));
    whole_->note_resident_of(*subranges_.back());
  }
}

void Session::resize(const std::vector<std::int64_t>& sizes) {
  const std::size_t index = subrange_with(file_->program(), sizes);
  if (index < subranges_.size()) { require_inside(file_->program(), sizes); }  // an error's range
  auto& chosen = index < subranges_.size() ? *subranges_[index] : *whole_;
  chosen.resize(sizes);
  now_ = &chosen;
}

void Session::set_profiling(bool wanted) {
  whole_->set_profiling(wanted);
  for (const auto& each : subranges_) { each->set_profiling(wanted); }
}

SessionMemory Session::memory() const {
  SessionMemory memory = whole_->memory();
  memory.program = file_->program_size();
  memory.weights = file_->weights_size();
  memory.other += sizeof *this + subranges_.capacity() * sizeof subranges_[0];
  for (const auto& each : subranges_) {
    const SessionMemory held = each->memory();
    memory.decoded += held.decoded;
    memory.kernels += held.kernels;
    memory.other += held.other;
  }
  return memory;
}

}  // namespace arenite
