#include "turn_checks.hpp"

#include <algorithm>
#include <iterator>
#include <string>

#include "checking.hpp"
#include "lanes.hpp"
#include "rows_read.hpp"
#include "sizes.hpp"
#include "updated_inputs.hpp"

namespace arenite {

namespace {

using Indices = flatbuffers::Vector<std::int32_t>;

std::int64_t at_position(const Indices* indices, std::size_t position) {
  return indices->Get(static_cast<flatbuffers::uoffset_t>(position));
}

std::string label_of(const program::Step& step) { return "step " + quoted(step.name()); }

std::string interval(RowRange rows) {
  return std::to_string(rows.first) + " to " + std::to_string(rows.first + rows.count);
}

[[noreturn]] void refuse_missing(const std::string& label, std::size_t row) {
  refuse(label + " has no turn for row " + std::to_string(row));
}

// Bytes of a row along axis 1.
std::uint64_t row_size(const TensorView& view) {
  return view.size / std::max<std::size_t>(view.shape[1], 1);
}

}  // namespace

TurnChecks::TurnChecks(const program::Program& program, const std::vector<TensorView>& tensors,
                       const LiveRecords& records)
    : program_(program),
      tensors_(tensors),
      records_(records),
      progress_(program.steps()->size()),
      beside_(program.steps()->size()),
      moving_(program.memories()->size()) {
  if (!has_dimensions(program)) { return; }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto& tensor = *program.tensors()->Get(static_cast<flatbuffers::uoffset_t>(i));
    rooms_.push_back(
        {0, tensors[i].is_constant ? 0 : program.memories()->Get(tensor.memory())->size()});
  }
}

void TurnChecks::check(const RunTurn& turn, std::size_t index) {
  const auto& steps = *program_.steps();
  if (turn.step() >= steps.size()) {
    refuse("turn " + std::to_string(index) + " names step " + std::to_string(turn.step()) + " of " +
           std::to_string(steps.size()));
  }
  const auto& step = *steps.Get(turn.step());
  const std::string label = label_of(step);
  Progress& progress = progress_[turn.step()];
  check_awaited(step, index, label);
  if (runs_beside(step)) { note_beside(step, turn.step(), index, label); }
  if (turn.count() == 0) {
    if (turn.first() != 0) {
      refuse(label + " runs no rows from row " + std::to_string(turn.first()) + " on" + at(index));
    }
    check_whole(step, index, label);
    progress.is_whole = true;
    return;
  }
  const RowRange rows{turn.first(), turn.count()};
  const std::size_t extent = num_rows(step, label);
  if (rows.first >= extent || rows.count > extent - rows.first) {
    refuse(label + " runs rows " + interval(rows) + " of " + std::to_string(extent) + at(index));
  }
  progress.extent = extent;
  if (takes_rows(step, tensors_)) {
    check_sums(step, rows, index, label, progress);
  } else {
    check_rows(step, rows, index, label);
  }
  progress.add(rows);
}

// What a step of another lane touches is live until it is awaited, at the latest by the end of the
// run; for now as long as it is. Until then no other step may write it, nor read what this one
// does.
void TurnChecks::note_beside(const program::Step& step, std::size_t number, std::size_t turn,
                             const std::string& label) {
  Beside& beside = beside_[number];
  if (beside.is_issued) { refuse(label + " of another lane runs a second time" + at(turn)); }
  beside = {true, turn};
  std::size_t until = num_turns(program_);
  for (const auto* list : {step.inputs(), step.outputs()}) {
    for (std::size_t i = 0; i < count(list); ++i) {
      const auto index = at_position(list, i);
      if (index < 0 || view(index).is_constant || view(index).size == 0) { continue; }
      const auto& tensor = *program_.tensors()->Get(static_cast<flatbuffers::uoffset_t>(index));
      const Extent extent{tensor.memory(), tensor.offset(), tensor.offset() + view(index).size};
      until = std::min(until, records_.held_until(extent));
      if (list == step.outputs()) {
        moving_.note_written(extent, turn);
      } else {
        moving_.note_read(extent, turn);
      }
    }
  }
  if (until < num_turns(program_)) { dying_.emplace(until, number); }
}

void TurnChecks::check_awaited(const program::Step& step, std::size_t turn,
                               const std::string& label) {
  for (std::size_t i = 0; step.awaits() != nullptr && i < step.awaits()->size(); ++i) {
    const auto awaited = step.awaits()->Get(static_cast<flatbuffers::uoffset_t>(i));
    Beside& beside = beside_[awaited];
    if (!beside.is_issued) {
      refuse(label + " awaits " + label_of(*program_.steps()->Get(awaited)) +
             ", which has not run" + at(turn));
    }
    done_ = std::max(done_, beside.turn + 1);
  }
  // A lane does one step after another, so what is awaited was the last of several.
  for (; !dying_.empty() && dying_.begin()->first <= turn; dying_.erase(dying_.begin())) {
    const std::size_t number = dying_.begin()->second;
    if (beside_[number].turn >= done_) {
      refuse(label_of(*program_.steps()->Get(static_cast<flatbuffers::uoffset_t>(number))) +
             " may still use tensors that are no longer live" + at(turn) +
             ", as no step awaits it");
    }
  }
}

void TurnChecks::Progress::add(RowRange rows) {
  std::size_t first = rows.first;
  std::size_t end = rows.first + rows.count;
  auto next = made.upper_bound(first);
  if (next != made.begin() && std::prev(next)->second >= first) {
    --next;
    first = next->first;
  }
  while (next != made.end() && next->first <= end) {
    end = std::max(end, next->second);
    next = made.erase(next);
  }
  made.emplace(first, end);
}

// Turns that find a row at another place than before are of another step of the same name, so these
// make the rows together.
void TurnChecks::finish() const {
  std::map<std::string, Progress> together;
  for (std::size_t i = 0; has_turns(program_) && i < progress_.size(); ++i) {
    const Progress& progress = progress_[i];
    if (progress.is_whole) { continue; }
    const std::string label =
        label_of(*program_.steps()->Get(static_cast<flatbuffers::uoffset_t>(i)));
    if (progress.made.empty()) { refuse(label + " has no turn"); }
    if (progress.next != 0) { refuse_missing(label, progress.next); }
    Progress& all = together[label];
    all.extent = std::max(all.extent, progress.extent);
    for (const auto& [first, end] : progress.made) { all.add({first, end - first}); }
  }
  for (const auto& [label, progress] : together) {
    const auto [first, end] = *progress.made.begin();
    const std::size_t missing = first > 0 ? 0 : end;
    if (missing < progress.extent) { refuse_missing(label, missing); }
  }
}

// Rows of the results, or of the first input if the step takes those.
std::size_t TurnChecks::num_rows(const program::Step& step, const std::string& label) const {
  const auto rows_of = [&](std::int64_t index) {
    const auto& found = view(index);
    if (found.rank() < 2 || found.shape[0] != 1 || found.size == 0) {
      refuse(label + " runs by rows, which tensor '" +
             program_.tensors()->Get(static_cast<flatbuffers::uoffset_t>(index))->name()->str() +
             "' does not have");
    }
    return found.shape[1];
  };
  if (takes_rows(step, tensors_)) { return rows_of(at_position(step.inputs(), 0)); }
  if (step.kernel_type() == program::Operator::External || count(step.outputs()) == 0) {
    refuse(label + " runs by rows, and makes none");
  }
  const std::size_t extent = rows_of(at_position(step.outputs(), 0));
  for (std::size_t i = 1; i < count(step.outputs()); ++i) {
    if (rows_of(at_position(step.outputs(), i)) != extent) {
      refuse(label + " runs by rows, and its results differ in theirs");
    }
  }
  return extent;
}

void TurnChecks::check_whole(const program::Step& step, std::size_t turn,
                             const std::string& label) {
  const bool is_beside = runs_beside(step);
  const auto updated = updated_inputs(step);
  for (std::size_t i = 0; i < count(step.inputs()); ++i) {
    const bool is_updated = std::find(updated.begin(), updated.end(), i) != updated.end();
    const Use use = is_updated ? Use::written : Use::read;
    require_live(at_position(step.inputs(), i), turn, label, is_beside ? Use::held : use);
  }
  for (std::size_t i = 0; i < count(step.outputs()); ++i) {
    const Use use = is_beside ? Use::held : Use::written;
    require_live(at_position(step.outputs(), i), turn, label, use);
  }
  require_live(step.scratch(), turn, label, Use::written);
}

void TurnChecks::check_rows(const program::Step& step, RowRange rows, std::size_t turn,
                            const std::string& label) {
  for (std::size_t i = 0; i < count(step.inputs()); ++i) {
    const auto index = at_position(step.inputs(), i);
    const auto read = rows_read(step, tensors_, i, rows);
    if (read.has_value()) {
      require_rows_live(index, *read, turn, label, Use::read);
    } else {
      require_live(index, turn, label, Use::read);
    }
  }
  for (std::size_t i = 0; i < count(step.outputs()); ++i) {
    require_rows_live(at_position(step.outputs(), i), rows, turn, label, Use::written);
  }
  require_live(step.scratch(), turn, label, Use::written);
}

void TurnChecks::check_sums(const program::Step& step, RowRange rows, std::size_t turn,
                            const std::string& label, Progress& progress) {
  if (rows.first != progress.next) {
    refuse(label + " takes row " + std::to_string(rows.first) + at(turn) + ", where row " +
           std::to_string(progress.next) + " is next");
  }
  require_rows_live(at_position(step.inputs(), 0), rows, turn, label, Use::read);
  require_live(step.scratch(), turn, label, Use::written);
  if (rows.first == 0 && step.scratch() >= 0) {
    const auto& stated =
        *program_.tensors()->Get(static_cast<flatbuffers::uoffset_t>(step.scratch()));
    progress.until = records_.held_until(
        {stated.memory(), stated.offset(), stated.offset() + view(step.scratch()).size});
  }
  if (step.scratch() >= 0 && turn >= progress.until) {
    refuse(label + ": its working memory is not live from row 0 on" + at(turn));
  }
  const bool is_last = rows.first + rows.count == progress.extent;
  progress.next = is_last ? 0 : rows.first + rows.count;
  for (std::size_t i = 0; is_last && i < count(step.outputs()); ++i) {
    require_live(at_position(step.outputs(), i), turn, label, Use::written);
  }
}

void TurnChecks::require_live(std::int64_t index, std::size_t turn, const std::string& label,
                              Use use) {
  if (index < 0 || view(index).is_constant || view(index).size == 0) { return; }
  const auto& found = view(index);
  if (found.rows != nullptr) {
    require_rows_live(index, {0, found.shape[1]}, turn, label, use);
    return;
  }
  const auto& tensor = *program_.tensors()->Get(static_cast<flatbuffers::uoffset_t>(index));
  const Extent extent{tensor.memory(), tensor.offset(), tensor.offset() + found.size};
  if (!records_.hold(extent)) {
    refuse(label + ": tensor '" + tensor.name()->str() + "' lies in no record that is live" +
           at(turn));
  }
  note_room(extent, index);
  require_unmoved(extent, index, turn, label, use);
}

void TurnChecks::note_room(const Extent& extent, std::int64_t index) {
  if (rooms_.empty() || view(index).rows != nullptr) { return; }
  const Room around = records_.room_around(extent);
  Room& room = rooms_[static_cast<std::size_t>(index)];
  room = {std::max(room.low, around.low), std::min(room.high, around.high)};
}

void TurnChecks::require_unmoved(const Extent& extent, std::int64_t index, std::size_t turn,
                                 const std::string& label, Use use) {
  const bool is_written = use != Use::held && moving_.are_written(extent, done_);
  if (is_written || (use == Use::written && moving_.are_read(extent, done_))) {
    const auto& tensor = *program_.tensors()->Get(static_cast<flatbuffers::uoffset_t>(index));
    refuse(label + ": tensor '" + tensor.name()->str() + "' may still be " +
           (is_written ? "written" : "read") + " beside it" + at(turn) + ", as no step awaits it");
  }
}

void TurnChecks::require_rows_live(std::int64_t index, RowRange rows, std::size_t turn,
                                   const std::string& label, Use use) {
  if (index < 0 || view(index).is_constant || view(index).size == 0 || rows.count == 0) { return; }
  const auto& tensor = *program_.tensors()->Get(static_cast<flatbuffers::uoffset_t>(index));
  const auto& found = view(index);
  const std::uint64_t size = row_size(found);
  const auto require = [&](std::uint64_t begin, RowRange some) {
    const Extent extent{tensor.memory(), begin, begin + some.count * size};
    if (!records_.hold(extent)) {
      refuse(label + ": tensor '" + tensor.name()->str() + "', rows " + interval(some) +
             ", lies in no record that is live" + at(turn));
    }
    note_room(extent, index);
    require_unmoved(extent, index, turn, label, use);
  };
  if (found.rows == nullptr) {
    require(tensor.offset() + rows.first * size, rows);
    return;
  }
  for (std::size_t row = rows.first; row < rows.first + rows.count; ++row) {
    require(found.rows[row], {row, 1});
  }
}

std::string TurnChecks::at(std::size_t turn) const {
  return std::string(" at ") + turn_word(program_) + " " + std::to_string(turn);
}

}  // namespace arenite
