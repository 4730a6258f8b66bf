// What a session of a program for a range of sizes has beside: its sizes, and its steps' memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/strided_copy.hpp"
#include "sized_tensors.hpp"
#include "sizes.hpp"
#include "stated_numbers.hpp"
#include "step.hpp"
#include "step_memory.hpp"

namespace arenite {

// A step with a shape or number that depends on sizes.
struct SizedStep {
  std::size_t index;
  std::vector<std::size_t> tensors;  // its operands whose size or place may vary
  // A copy of the program's, if some of its numbers depend on sizes.
  flatbuffers::DetachedBuffer copy;
  std::vector<std::pair<StatedNumber, std::uint32_t>> numbers;  // of the copy, and expressions
  KeptTables kept;
  StepMemory memory;
  std::size_t most_taken = 0;  // of its memory
  std::unique_ptr<Operands> operands;
  bool is_changed = false;

  const program::Step& stated(const program::Program& program) const;
};

// A dimension that a step counts in each run.
struct CountedSize {
  std::size_t dimension;
  std::size_t step;
  std::size_t tensor;
  TensorView rows;  // the tensor, the step's result, with as many rows as it may make
};

struct Resizing {
  // All must outlive this object: at its end it destroys the steps and copies whose memory it has.
  Resizing(const program::Program& program, std::vector<SizedPlace> places,
           std::vector<std::unique_ptr<Step>>& steps, std::vector<StridedCopy>& feeds,
           std::vector<StridedCopy>& fetches);
  ~Resizing();
  Resizing(const Resizing&) = delete;
  Resizing& operator=(const Resizing&) = delete;

  // Destroys the copies of inputs and outputs.
  void clear_ports();
  // The sized step of an index; null for one that is the same at all sizes.
  SizedStep* find(std::size_t step);
  // Makes a step, in its memory, in the place of the one that there was.
  void make(SizedStep& step);
  // Computes lengths and numbers for the current values, and notes what changed. Throws
  // ProgramError.
  void set(std::vector<TensorView>& tensors);
  // Makes all steps again, from one on, that something changed for, or all that are sized.
  void make_changed(bool all, std::size_t first);
  // Notes, of a step that counts, how much its run has made. False: as much as before.
  bool note_count(std::size_t step);
  // Gives dimensions that steps count their highest values, which they have before a run.
  void reset_counts(std::vector<std::int64_t>& values_of) const;
  // Lets a step that counts write as many rows as it may make, whatever was counted last.
  void keep_rows(std::size_t step, Operands& operands, const std::vector<TensorView>& tensors);
  // Forgets where inputs are read by steps that may be made again in a run, which could not lend
  // them.
  void keep_apart(std::vector<const std::byte**>& places) const;
  // Gives each step as much memory as it took so far, and some more. None may be made.
  void place(std::size_t of_ports);
  std::size_t held_bytes() const;

  const program::Program& program;
  std::vector<SizedLengths> lengths;
  std::vector<SizedPlace> places;
  std::vector<std::unique_ptr<Step>>& made;
  std::vector<StridedCopy>& feeds;
  std::vector<StridedCopy>& fetches;
  std::vector<std::int64_t> sizes;   // by dimension
  std::vector<std::int64_t> next;    // the sizes that are asked for
  std::vector<std::int64_t> values;  // by expression
  std::vector<std::int64_t> wanted;  // the next values
  std::vector<std::int64_t> grown;   // by dimension that grows: the rows that states hold
  std::vector<SizeSource> sources;
  std::deque<SizedStep> steps;  // which do not move
  std::deque<CountedSize> counted;
  std::vector<bool> is_changed;              // by tensor
  std::vector<bool> is_read;                 // by tensor: whether a sized step reads it
  std::vector<const TensorView*> row_views;  // by step: what has the rows of its turns; or null
  std::vector<std::size_t> rows;             // by step that runs by rows: how many there are
  std::vector<std::size_t> summed;           // by step that sums up rows: how many its turns count
  std::vector<std::uint32_t> rounds;         // by loop: how many have rows; at least 1
  std::vector<const TensorView*> written;    // room for a list
  StepMemory ports;                          // of the copies of inputs and outputs
  std::unique_ptr<std::byte[]> block;
  std::size_t block_size = 0;
};

}  // namespace arenite
