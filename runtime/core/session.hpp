// A program ready to run: memory laid out, steps made, all set up once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "arena.hpp"
#include "constants.hpp"
#include "kernels/strided_copy.hpp"
#include "mapped_file.hpp"
#include "poison.hpp"
#include "spill_file.hpp"
#include "step.hpp"
#include "tensor_view.hpp"
#include "turns.hpp"

namespace arenite {

struct SessionThreads;

struct SessionOptions {
  int threads = 1;
  std::optional<std::uint8_t> poison;  // what is dead is filled with this byte
  bool guard = false;                  // pages around each memory that cannot be touched
  // Memory of the caller, one a memory of the program in that order; empty: the library takes all.
  std::vector<Buffer> buffers;
};

// Bytes that a session holds while it lives. Not in it: threads and their stacks, and what another
// runtime holds for its steps.
struct SessionMemory {
  std::uint64_t memories = 0;          // the library's or the caller's, with the slack behind
  std::uint64_t program = 0;           // a copy of the file's
  std::uint64_t weights = 0;           // of the file, mapped
  std::uint64_t weights_resident = 0;  // of those, what is read in runs and not given back
  std::uint64_t decoded = 0;           // constants without their code, and what decodes
  std::uint64_t kernels = 0;           // packed weights, tables and the steps themselves
  std::uint64_t other = 0;             // what describes tensors, inputs and outputs
};

class Session {
 public:
  // Loads an open file. Throws ProgramError or SystemError.
  Session(int descriptor, const SessionOptions& options);
  // Runs a file that sessions share. Throws ProgramError or SystemError.
  Session(std::shared_ptr<const MappedFile> file, const SessionOptions& options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const program::Program& program() const { return file_->program(); }
  const MappedFile& file() const { return *file_; }
  // By index of the program's memories.
  const std::vector<Arena>& arenas() const { return arenas_; }
  const TensorView& tensor(std::size_t index) const { return tensors_[index]; }
  const TensorView& port_tensor(const program::Port& port) const {
    return tensors_[static_cast<std::size_t>(port.tensor())];
  }
  std::size_t num_tensors() const { return tensors_.size(); }
  std::size_t num_steps() const { return steps_.size(); }
  // What a run counts (turns.hpp): as many as there are steps, unless some run by rows.
  std::size_t num_turns() const { return arenite::num_turns(program()); }

  // Whether kernels are those that were measured on this processor.
  Tuning tuning() const { return tuning_; }

  // Whether a thread of its own moves tensors beside the computation. On one processor there is
  // none unless a device is waited for: those steps run in their turn.
  bool has_lane() const { return !beside_.empty(); }

  // A session with threads, that of a lane included, in a child of the process that created it,
  // throws ForkedError from `feed`, `fetch` and `run`.

  // Copies an input of the caller into the arena: contiguous, its axes as the caller has them.
  void feed(std::size_t input, const std::byte* data);
  // Copies an output to the caller in the same form.
  void fetch(std::size_t output, std::byte* data) const;
  // Runs turns [first, last), none of them of an external step. Allocates nothing. What moves
  // beside them may still do so when it returns, unless these were the last turns.
  void run(std::size_t first, std::size_t last);
  // Ends a run of which some turns are not run here: nothing moves any more when it returns. Throws
  // SpillError if the device of a spilled memory failed.
  void settle();
  // Lets the tensors that are kept between runs start anew.
  void reset();

  // What runs a step; null for one of another runtime.
  const Step* step(std::size_t index) const { return steps_[index].get(); }

  void set_profiling(bool wanted);
  // Of the last run while profiling, by step: all its turns.
  std::vector<std::int64_t> nanoseconds() const;
  // Notes what somebody else spent on a turn, if a profile was wanted.
  void note_nanoseconds(std::size_t turn, std::int64_t value);

  SessionMemory memory() const;

 private:
  void take_memories(const SessionOptions& options);
  void bind();
  void make_steps();
  void make_lane();
  // Whether there is a processor, or a device, for what runs beside the computation.
  bool gains_by_lane() const;
  bool is_beside(std::size_t step) const;
  // How many turns before this one are of the lane.
  std::size_t num_beside_before(std::size_t end) const;
  void run_turn(const RunTurn& turn);
  const TensorView* find(std::int64_t index) const {
    return index < 0 ? nullptr : &tensors_[static_cast<std::size_t>(index)];
  }

  std::shared_ptr<const MappedFile> file_;
  Tuning tuning_;
  std::vector<TensorView> tensors_;
  Constants constants_;
  std::vector<Arena> arenas_;
  std::vector<std::unique_ptr<SpillFile>> files_;  // by memory; null where it has an arena
  std::unique_ptr<Poison> poison_;                 // null: nothing is filled
  std::unique_ptr<SessionThreads> threads_;
  std::vector<std::unique_ptr<Step>> steps_;
  std::vector<std::size_t> beside_;        // steps of the lane, in their order
  std::vector<std::size_t> awaited_;       // by step: so many of the lane are done before it
  std::vector<StridedCopy> feeds_;         // by input
  std::vector<StridedCopy> fetches_;       // by output
  std::vector<std::int64_t> nanoseconds_;  // by turn; none before any was profiled
  bool is_profiling_ = false;
};

}  // namespace arenite
