// Which stages of a system may run now, by the bytes that they touch.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "live_records.hpp"
#include "stages.hpp"
#include "tensor_view.hpp"

namespace arenite {

// Stages share an arena. What a stage made is needed until all that read it have run or are left
// out, and what it keeps until the schedule ends. While a stage runs it needs all that it touches.
// A call of `begin` that would let a stage overwrite what another needs throws, whatever schedule
// the program states.
//
// Not for several threads at once.
class StageGuard {
 public:
  // Takes a validated program and its tensors at the highest sizes.
  StageGuard(const program::Program& program, const std::vector<TensorView>& tensors);

  std::size_t num_stages() const { return stages_.size(); }
  const StageRanges& ranges(std::size_t stage) const { return stages_[stage].ranges; }
  bool is_running(std::size_t stage) const { return stages_[stage].is_running; }

  // Before a stage begins and its inputs are written. Throws StageError and changes nothing where
  // an output that it reads is not there, or where it would overwrite something that is needed.
  void begin(std::size_t stage);
  // After its last turn.
  void end(std::size_t stage);
  // Leaves out a stage, or gives up the run that it is in: it needs nothing any more.
  void skip(std::size_t stage);
  // Ends the schedule: nothing is needed any more.
  void finish();

 private:
  using Extents = std::vector<Extent>;  // sorted, none next to another

  struct Stage {
    StageRanges ranges;
    Extents written;                 // with its inputs
    Extents touched;                 // with what it reads of other stages
    std::vector<std::size_t> reads;  // outputs of others
    bool is_running = false;
  };

  struct Output {
    std::size_t stage;
    Extents bytes;
    bool is_kept = false;
    bool is_there = false;
    std::vector<std::size_t> readers;  // stages
    std::vector<bool> has_read;        // by reader
  };

  std::string name_of(std::size_t stage) const;
  std::string output_name(std::size_t output) const;
  // What still needs an output, other than a stage; empty if nothing does.
  std::string needed_by(const Output& output, std::size_t stage) const;
  void note_read(std::size_t stage);

  const program::Program& program_;
  std::vector<Stage> stages_;
  std::vector<Output> outputs_;
};

}  // namespace arenite
