// A program that is ready to run: memory allocated and steps made. Of a file it is the whole
// program, one of its subranges, or one that a step of it runs.
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

struct Resizing;
struct SessionThreads;
struct SizedStep;

struct SessionOptions {
  int threads = 1;
  std::optional<std::uint8_t> poison;  // byte that dead memory is filled with
  bool guard = false;                  // inaccessible pages around each memory, indices checked
  // Memory of the caller, by memory of the program; empty: the library allocates all of it.
  std::vector<Buffer> buffers;
  std::size_t depth = 0;  // how many programs it lies in, of one that a step runs
};

// Bytes that a session holds. It leaves out threads, their stacks, and the memory of another
// runtime.
struct SessionMemory {
  std::uint64_t memories = 0;          // the library's or the caller's, with the slack behind
  std::uint64_t program = 0;           // a copy of the file's
  std::uint64_t weights = 0;           // of the file, mapped
  std::uint64_t weights_resident = 0;  // the part of them that runs read
  std::uint64_t decoded = 0;           // decoded constants and decoders
  std::uint64_t kernels = 0;           // packed weights, tables and the steps themselves
  std::uint64_t other = 0;             // descriptions of tensors, inputs and outputs
};

class ProgramSession {
 public:
  // Runs a program of a file, whose threads sessions may share. Throws ProgramError or SystemError.
  ProgramSession(std::shared_ptr<const MappedFile> file, const program::Program& program,
                 std::shared_ptr<SessionThreads> threads, const SessionOptions& options);
  ~ProgramSession();
  ProgramSession(const ProgramSession&) = delete;
  ProgramSession& operator=(const ProgramSession&) = delete;

  const program::Program& program() const { return program_; }
  // By index of the program's memories.
  const std::vector<Arena>& arenas() const { return arenas_; }
  const TensorView& tensor(std::size_t index) const { return tensors_[index]; }
  const TensorView& port_tensor(const program::Port& port) const {
    return tensors_[static_cast<std::size_t>(port.tensor())];
  }
  const std::vector<TensorView>& tensors() const { return tensors_; }
  std::size_t num_tensors() const { return tensors_.size(); }
  std::size_t num_steps() const { return steps_.size(); }
  // The value of each dimension: the highest, until they are set. Empty for a program without any.
  const std::vector<std::int64_t>& sizes() const;
  // Returns the value of each dimension for which inputs have these shapes, or the one of `sizes`
  // where no input tells it. Throws SizeRangeError where there is none. Shapes that contradict one
  // another are the caller's to find.
  std::vector<std::int64_t> sizes_of(const std::vector<std::vector<std::int64_t>>& shapes,
                                     std::vector<std::int64_t> sizes) const;
  // By dimension: of one that grows, the rows that states hold.
  const std::vector<std::int64_t>& grown() const;
  // Sets the value of each dimension: shapes and steps are those of these sizes, and what inputs,
  // outputs and, where their shapes change, states held is lost. No run may be under way. Allocates
  // nothing. Throws SizeRangeError for a value outside of its range and ProgramError where the file
  // does not fit these sizes, and leaves the sizes as they were. Of a dimension that grows it is
  // the number of rows that states hold: rows that no run has made have the bytes that are there.
  void resize(const std::vector<std::int64_t>& sizes);

  // Turns of a run (turns.hpp): as many as there are steps, unless some run by rows.
  std::size_t num_turns() const { return arenite::num_turns(program()); }

  // Whether the program's kernels were tuned on this processor.
  Tuning tuning() const { return tuning_; }

  // Whether a separate thread moves tensors beside the computation. With a single processor there
  // is one only for spilling to a file; otherwise those steps run in their turn.
  bool has_lane() const { return !beside_.empty(); }

  // After fork(), `feed`, `fetch` and `run` of a session with threads, including that of a lane,
  // throw ForkedError in the child.

  // Copies a contiguous array, with the model's axes, into an input.
  void feed(std::size_t input, const std::byte* data);
  // Lets the next run read an input in a contiguous array of the caller, where that is possible;
  // otherwise copies it. The array stays as it is until `settle` or the last turn.
  void lend(std::size_t input, const std::byte* data);
  // Copies an output into a contiguous array with the model's axes.
  void fetch(std::size_t output, std::byte* data) const;
  // Begins a run, before its first turn. Throws SizeRangeError if states have grown since the sizes
  // were set.
  void begin() const;
  // Ends a run that has not failed: states have grown.
  void end();
  // Runs turns [first, last), none of them of an external step. Allocates nothing. Steps of the
  // other lane may still be at work when it returns, unless these were the last turns.
  void run(std::size_t first, std::size_t last);
  // Ends a run whose last turns another runtime runs, or that failed: waits for the other lane, and
  // forgets the arrays that were lent. Throws SpillError
  // if the device of a spilled memory failed.
  void settle();
  // Resets states to their initial values, without rows; the sizes stay until they are set.
  void reset();
  // Lets states hold no more than so many rows, until they grow again.
  void truncate(std::int64_t rows);

  // Saves the states to bytes, and loads them (saved_states.cpp). What is loaded is checked before
  // anything changes; throws StatesError.
  std::size_t saved_size() const;
  void save(std::byte* to) const;
  void load(const std::byte* from, std::size_t size);

  // The step of an index; null if another runtime runs it.
  const Step* step(std::size_t index) const { return steps_[index].get(); }

  void set_profiling(bool wanted);
  // Durations of the last profiled run, by step, over all turns of each.
  std::vector<std::int64_t> nanoseconds() const;
  // Records the duration of a turn of another runtime, if profiling is on.
  void note_nanoseconds(std::size_t turn, std::int64_t value);

  // Without the bytes of the file, but those that runs read.
  SessionMemory memory() const;
  // Counts what runs of another program of the file read as read by these.
  void note_resident_of(const ProgramSession& other) {
    constants_.note_resident_of(other.constants_);
  }

 private:
  void take_memories(const SessionOptions& options);
  void bind();
  void make_steps(const SessionOptions& options);
  // Returns the program of this index among those inside, in the working memory of its step.
  ProgramSession* make_inner(std::size_t index, const TensorView* scratch,
                             const program::Step& step, SessionOptions options);
  // Gives sized steps and copies of inputs and outputs memory of their own.
  void settle_memory();
  // Makes a step that depends on sizes, the next one.
  void make_sized(SizedStep& sized, Operands operands);
  void make_ports(bool is_running = false);
  // Begins with states that have no rows.
  void begin_growing();
  // Finds, of each step, the tensor whose rows its turns are of, at the highest sizes.
  void find_row_views();
  // Counts the rows of each step that may run by rows.
  void note_rows();
  // Makes everything of the next sizes; `all` for all steps that are sized. In a run, those behind
  // the step that counts.
  void apply_sizes(bool all, std::optional<std::size_t> counting = std::nullopt);
  // After the run of a step that counts: makes everything of the size that it counted.
  void apply_count(std::size_t step);
  void make_lane();
  // Whether a second processor, or a device, makes a lane worthwhile.
  bool gains_by_lane() const;
  bool is_beside(std::size_t step) const;
  // How many turns before this one are of the lane.
  std::size_t num_beside_before(std::size_t end) const;
  void run_turn(const RunTurn& turn);
  const TensorView* find(std::int64_t index) const {
    return index < 0 ? nullptr : &tensors_[static_cast<std::size_t>(index)];
  }

  std::shared_ptr<const MappedFile> file_;
  const program::Program& program_;  // of the file
  Tuning tuning_;
  std::vector<TensorView> tensors_;
  Constants constants_;
  std::vector<Arena> arenas_;
  std::vector<std::unique_ptr<SpillFile>> files_;  // by memory; null where it has an arena
  std::unique_ptr<Poison> poison_;                 // null: nothing is filled
  std::shared_ptr<SessionThreads> threads_;
  std::vector<std::unique_ptr<ProgramSession>> inner_;  // that steps run
  std::vector<std::unique_ptr<Step>> steps_;
  std::vector<std::size_t> beside_;        // steps of the lane, in their order
  std::vector<std::size_t> awaited_;       // by step: so many of the lane are done before it
  std::vector<StridedCopy> feeds_;         // by input
  std::vector<const std::byte**> places_;  // by input: where its reader finds it (lent_inputs.hpp)
  bool has_lent_ = false;
  std::vector<StridedCopy> fetches_;       // by output
  std::vector<std::int64_t> nanoseconds_;  // by turn; none before any was profiled
  bool is_profiling_ = false;
  bool is_guarded_;
  bool counts_ = false;                 // some step counts a dimension
  std::unique_ptr<Resizing> resizing_;  // null: all shapes are fixed. Destroyed first.
};

}  // namespace arenite
