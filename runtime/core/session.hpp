// A session of a program file: its program, and its subranges in the same memory.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "mapped_file.hpp"
#include "program_session.hpp"

namespace arenite {

// Each function is that of the program for the present sizes (program_session.hpp).
class Session {
 public:
  // Loads an open file. Throws ProgramError or SystemError.
  Session(int descriptor, const SessionOptions& options);
  // Runs a file that sessions share. Throws ProgramError or SystemError.
  Session(std::shared_ptr<const MappedFile> file, const SessionOptions& options);

  const MappedFile& file() const { return *file_; }
  const std::vector<Arena>& arenas() const { return whole_->arenas(); }
  const program::Program& program() const { return now_->program(); }
  const TensorView& tensor(std::size_t index) const { return now_->tensor(index); }
  const TensorView& port_tensor(const program::Port& port) const { return now_->port_tensor(port); }
  const std::vector<TensorView>& tensors() const { return now_->tensors(); }
  std::size_t num_tensors() const { return now_->num_tensors(); }
  std::size_t num_steps() const { return now_->num_steps(); }
  const Step* step(std::size_t index) const { return now_->step(index); }
  std::size_t num_turns() const { return now_->num_turns(); }
  Tuning tuning() const { return now_->tuning(); }
  bool has_lane() const { return whole_->has_lane(); }

  const std::vector<std::int64_t>& sizes() const { return now_->sizes(); }
  std::vector<std::int64_t> sizes_of(const std::vector<std::vector<std::int64_t>>& shapes) const {
    return whole_->sizes_of(shapes, sizes());
  }
  const std::vector<std::int64_t>& grown() const { return now_->grown(); }
  // Chooses the subrange that has these sizes, if one has: ports, steps and turns are then its own.
  void resize(const std::vector<std::int64_t>& sizes);

  void feed(std::size_t input, const std::byte* data) { now_->feed(input, data); }
  void lend(std::size_t input, const std::byte* data) { now_->lend(input, data); }
  void fetch(std::size_t output, std::byte* data) const { now_->fetch(output, data); }
  void begin() const { now_->begin(); }
  void end() { now_->end(); }
  void run(std::size_t first, std::size_t last) { now_->run(first, last); }
  void settle() { now_->settle(); }

  void reset() { now_->reset(); }
  void truncate(std::int64_t rows) { now_->truncate(rows); }
  std::size_t saved_size() const { return now_->saved_size(); }
  void save(std::byte* to) const { now_->save(to); }
  void load(const std::byte* from, std::size_t size) { now_->load(from, size); }

  void set_profiling(bool wanted);
  std::vector<std::int64_t> nanoseconds() const { return now_->nanoseconds(); }
  void note_nanoseconds(std::size_t turn, std::int64_t value) {
    now_->note_nanoseconds(turn, value);
  }

  SessionMemory memory() const;

 private:
  std::shared_ptr<const MappedFile> file_;
  std::unique_ptr<ProgramSession> whole_;  // has the memories, and must outlive the others
  std::vector<std::unique_ptr<ProgramSession>> subranges_;
  ProgramSession* now_;
};

}  // namespace arenite
