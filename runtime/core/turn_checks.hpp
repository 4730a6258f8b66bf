// Checks that the turns of a program touch only live records.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "kernels/image.hpp"
#include "live_records.hpp"
#include "moving_bytes.hpp"
#include "program_generated.h"
#include "tensor_view.hpp"
#include "turns.hpp"

namespace arenite {

// Checks the turns of a program one after another.
//
// Each method throws ProgramError with one sentence.
class TurnChecks {
 public:
  // Steps name tensors that exist, and tensors lie inside their memories.
  TurnChecks(const program::Program& program, const std::vector<TensorView>& tensors,
             const LiveRecords& records);

  // Refuses a turn of a step or of rows that do not exist, or that touches bytes outside of the
  // live records. The records are at this turn.
  void check(const RunTurn& turn, std::size_t index);
  // Refuses steps whose results were not made in full.
  void finish() const;
  // What is done with a tensor at a turn. The caller has what it holds to itself, as has a step of
  // another lane what those before it there are done with.
  enum class Use { held, read, written };

  // Refuses a tensor some of which lies in no record that is live at this turn, or which a step of
  // another lane may still write, or still read where this one writes it.
  void require_live(std::int64_t tensor, std::size_t turn, const std::string& label, Use use);

  // By tensor, where it may lie at other sizes; of a program without dimensions none.
  const std::vector<Room>& rooms() const { return rooms_; }

 private:
  // A step of another lane.
  struct Beside {
    bool is_issued = false;
    std::size_t turn = 0;  // at which it is issued
  };

  // What was run of a step so far.
  struct Progress {
    bool is_whole = false;
    std::map<std::size_t, std::size_t> made;  // rows, or those taken into sums: ends by begins
    std::size_t extent = 0;                   // rows that there are
    std::size_t next = 0;                     // row to be taken; 0: it begins anew
    std::size_t until = 0;                    // turn until which its working memory is live

    void add(RowRange rows);
  };

  const TensorView& view(std::int64_t index) const {
    return tensors_[static_cast<std::size_t>(index)];
  }
  void note_beside(const program::Step& step, std::size_t number, std::size_t turn,
                   const std::string& label);
  void check_awaited(const program::Step& step, std::size_t turn, const std::string& label);
  void check_whole(const program::Step& step, std::size_t turn, const std::string& label);
  void check_rows(const program::Step& step, RowRange rows, std::size_t turn,
                  const std::string& label);
  void check_sums(const program::Step& step, RowRange rows, std::size_t turn,
                  const std::string& label, Progress& progress);
  void require_rows_live(std::int64_t tensor, RowRange rows, std::size_t turn,
                         const std::string& label, Use use);
  void require_unmoved(const Extent& extent, std::int64_t tensor, std::size_t turn,
                       const std::string& label, Use use);
  void note_room(const Extent& extent, std::int64_t tensor);
  std::size_t num_rows(const program::Step& step, const std::string& label) const;
  std::string at(std::size_t turn) const;

  const program::Program& program_;
  const std::vector<TensorView>& tensors_;
  const LiveRecords& records_;
  std::vector<Room> rooms_;
  std::vector<Progress> progress_;  // by step
  std::vector<Beside> beside_;      // by step
  // Steps of another lane by the turn at which something that they touch dies.
  std::multimap<std::size_t, std::size_t> dying_;
  MovingBytes moving_;
  std::size_t done_ = 0;  // of another lane, what had its turn before this one is done
};

}  // namespace arenite
