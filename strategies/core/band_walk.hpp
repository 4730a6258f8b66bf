// The order in which the rows of a region are made, and the bytes that are live meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace arenite {

// A tensor, as whole rows; 0 rows if it does not fall into any.
struct BandTensor {
  std::int64_t size;
  std::int64_t num_rows;

  std::int64_t row_bytes() const { return size / num_rows; }
};

// The rows of one operand that each row of a step's result reads; the planner's `RowReads`.
struct BandReads {
  int tensor;
  std::vector<std::int64_t> first;
  std::vector<std::int64_t> stop;
  bool may_overwrite;  // rows of the result may lie where rows of it lay
};

// A step that can be made row by row; the planner's `RowStep`.
struct BandStep {
  // A turn takes the time of its work or that of the bytes it touches, whichever is longer.
  struct Times {
    double turn_s;      // of each turn, besides
    double constant_s;  // of the constants' bytes, whatever the rows
    double touched_s;   // of one row's bytes
    double work_s;      // of one row's work

    double of(std::int64_t rows) const;
  };

  int result;
  std::int64_t num_rows;
  std::int64_t accumulators;  // bytes; 0 if it does not sum up rows
  std::int64_t scratch;       // bytes that are live at each of its turns, and only then
  std::vector<BandReads> reads;
  Times times;
};

// Tensors and steps are indices; a step without reads cannot be made row by row.
struct BandProgram {
  std::vector<BandTensor> tensors;
  std::vector<BandStep> steps;
};

// Steps that run in bands, and what their surroundings need.
struct BandRegion {
  int start;
  int stop;
  std::int64_t rows;          // asked of the results at a time
  std::int64_t inner_rows;    // made at a time by other steps
  std::vector<int> consumed;  // tensors from before whose rows die one after the other
  std::vector<int> kept;      // tensors made here that something after the region reads
  std::int64_t carried;       // bytes that are live throughout
};

// Rows of a step's result that are made together; of its operand's, if it sums these up.
struct BandTurn {
  int step;
  std::int64_t first;
  std::int64_t rows;
};

// The rows of the region's results are asked for one band after the other. Each step makes the
// rows that the next one needs, and no row is made twice; a row is dead after its last reader.
class BandWalk {
 public:
  explicit BandWalk(BandProgram program);

  // Makes all rows, or gives up at the turn that goes above the limit and returns false.
  // Takes O(turns x operands of a step).
  bool run(const BandRegion& region, std::int64_t limit, std::vector<BandTurn>* turns = nullptr);

  // Of the last run.
  std::int64_t peak() const { return peak_; }
  std::int64_t num_turns() const { return num_turns_; }
  double seconds() const { return seconds_; }

  const BandProgram& program() const { return program_; }

 private:
  // A step reads rows of a tensor: who makes it, -1 if it is from before the region, and how its
  // rows die, -1 if they do not.
  struct Source {
    const BandReads* reads;
    int maker;
    int dying;
    int passed;  // where it is noted up to which row this reader no longer needs them
    bool may_overwrite;
  };
  // A tensor whose rows die in the region. Readers are in `passed_`, first to last.
  struct Dying {
    std::int64_t row_bytes;
    std::int64_t dead;
    std::vector<std::int64_t> passed;
  };
  struct Task {
    int step;
    std::int64_t stop;
  };

  void begin(const BandRegion& region);
  int find_result() const;
  bool pull(int step, std::int64_t stop);
  int missing_source(int step, std::int64_t end) const;
  bool make(int step, std::int64_t end);

  const BandStep& step_at(int step) const { return program_.steps[start_ + step]; }

  BandProgram program_;
  std::vector<int> makers_;  // by tensor, the step in the region that makes it; -1 if none does
  std::vector<int> dying_of_;

  int start_ = 0;
  int count_ = 0;
  std::int64_t inner_rows_ = 1;
  std::int64_t limit_ = 0;
  std::vector<std::int64_t> made_;                          // by step
  std::vector<std::pair<std::size_t, std::size_t>> spans_;  // by step, of its sources
  std::vector<Source> sources_;
  std::vector<Dying> dying_;
  std::size_t num_dying_ = 0;
  std::vector<int> results_;
  std::vector<Task> tasks_;
  std::vector<BandTurn>* turns_ = nullptr;
  std::int64_t load_ = 0;
  std::int64_t peak_ = 0;
  std::int64_t num_turns_ = 0;
  double seconds_ = 0;
};

}  // namespace arenite
