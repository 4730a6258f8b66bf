#include "stage_guard.hpp"

#include <algorithm>
#include <tuple>

#include "checking.hpp"
#include "errors.hpp"
#include "turns.hpp"

namespace arenite {

namespace {

using flatbuffers::uoffset_t;

std::vector<Extent> merged(std::vector<Extent> given) {
  std::sort(given.begin(), given.end(), [](const Extent& a, const Extent& b) {
    return std::tie(a.memory, a.begin) < std::tie(b.memory, b.begin);
  });
  std::vector<Extent> found;
  for (const auto& each : given) {
    if (!found.empty() && found.back().memory == each.memory && each.begin <= found.back().end) {
      found.back().end = std::max(found.back().end, each.end);
    } else {
      found.push_back(each);
    }
  }
  return found;
}

bool meet(const std::vector<Extent>& one, const std::vector<Extent>& other) {
  auto a = one.begin();
  auto b = other.begin();
  while (a != one.end() && b != other.end()) {
    if (a->memory == b->memory && a->begin < b->end && b->begin < a->end) { return true; }
    const bool a_first = std::tie(a->memory, a->end) < std::tie(b->memory, b->end);
    a_first ? ++a : ++b;
  }
  return false;
}

// Collects the bytes of tensors that lie in memories.
class Collector {
 public:
  Collector(const program::Program& program, const std::vector<TensorView>& tensors)
      : program_(program), tensors_(tensors) {}

  void add(std::int64_t index, std::vector<Extent>& to) const {
    if (index < 0) { return; }
    const auto& view = tensors_[static_cast<std::size_t>(index)];
    if (view.is_constant || view.is_spilled || view.size == 0) { return; }
    const auto& tensor = *program_.tensors()->Get(static_cast<uoffset_t>(index));
    if (view.rows == nullptr) {
      to.push_back({tensor.memory(), tensor.offset(), tensor.offset() + view.size});
      return;
    }
    const std::size_t num_rows = std::max<std::size_t>(view.shape[1], 1);
    for (std::size_t row = 0; row < view.shape[1]; ++row) {
      to.push_back({tensor.memory(), view.rows[row], view.rows[row] + view.size / num_rows});
    }
  }

  void add_all(const flatbuffers::Vector<std::int32_t>* indices, std::vector<Extent>& to) const {
    for (std::size_t i = 0; i < count(indices); ++i) {
      add(indices->Get(static_cast<uoffset_t>(i)), to);
    }
  }

 private:
  const program::Program& program_;
  const std::vector<TensorView>& tensors_;
};

}  // namespace

StageGuard::StageGuard(const program::Program& program, const std::vector<TensorView>& tensors)
    : program_(program) {
  const Collector bytes(program, tensors);
  const auto port = [&](const auto& ports, std::size_t index) {
    return ports.Get(static_cast<uoffset_t>(index))->tensor();
  };
  TurnCursor turn(program);
  for (const auto& ranges : stages_of(program)) {
    Stage stage{ranges, {}, {}, {}};
    std::vector<bool> seen(program.steps()->size());
    for (std::size_t i = ranges.inputs.first; i < ranges.inputs.end; ++i) {
      bytes.add(port(*program.inputs(), i), stage.written);
    }
    std::vector<Extent> read;
    for (; !turn.is_at_end() && turn.index() < ranges.turns.end; turn.next()) {
      const std::size_t number = (*turn).step();
      if (seen[number]) { continue; }
      seen[number] = true;
      const auto& step = *program.steps()->Get(static_cast<uoffset_t>(number));
      bytes.add_all(step.outputs(), stage.written);
      bytes.add(step.scratch(), stage.written);
      bytes.add_all(step.inputs(), read);
    }
    stage.written = merged(std::move(stage.written));
    read.insert(read.end(), stage.written.begin(), stage.written.end());
    for (std::size_t i = ranges.outputs.first; i < ranges.outputs.end; ++i) {
      Output output{stages_.size(), {}, false, false, {}, {}};
      bytes.add(port(*program.outputs(), i), output.bytes);
      output.bytes = merged(std::move(output.bytes));
      read.insert(read.end(), output.bytes.begin(), output.bytes.end());
      outputs_.push_back(std::move(output));
    }
    stage.touched = merged(std::move(read));
    stages_.push_back(std::move(stage));
  }
  for (std::size_t i = 0; i < count(program.stages()); ++i) {
    const auto& stated = *program.stages()->Get(static_cast<uoffset_t>(i));
    for (std::size_t k = 0; k < count(stated.reads()); ++k) {
      const std::size_t output = stated.reads()->Get(static_cast<uoffset_t>(k));
      stages_[i].reads.push_back(output);
      outputs_[output].readers.push_back(i);
      outputs_[output].has_read.push_back(true);
    }
    for (std::size_t k = 0; k < count(stated.keeps()); ++k) {
      outputs_[stated.keeps()->Get(static_cast<uoffset_t>(k))].is_kept = true;
    }
  }
}

std::string StageGuard::name_of(std::size_t stage) const {
  return program_.stages() == nullptr
             ? quoted(program_.name())
             : quoted(program_.stages()->Get(static_cast<uoffset_t>(stage))->name());
}

std::string StageGuard::output_name(std::size_t output) const {
  return "output " + quoted(program_.outputs()->Get(static_cast<uoffset_t>(output))->name());
}

std::string StageGuard::needed_by(const Output& output, std::size_t stage) const {
  if (!output.is_there) { return {}; }
  for (std::size_t i = 0; i < output.readers.size(); ++i) {
    if (!output.has_read[i] && output.readers[i] != stage) {
      return name_of(output.readers[i]) + " has not read; run or skip that first";
    }
  }
  return output.is_kept ? "is kept; finish the schedule first" : "";
}

void StageGuard::begin(std::size_t number) {
  Stage& stage = stages_[number];
  const std::string label = "stage " + name_of(number);
  for (const auto each : stage.reads) {
    if (!outputs_[each].is_there) {
      throw StageError(label + " reads " + output_name(each) + ", which is not there; run " +
                       name_of(outputs_[each].stage) + " first");
    }
  }
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const Output& output = outputs_[i];
    if (output.stage == number || !meet(stage.written, output.bytes)) { continue; }
    const std::string who = needed_by(output, number);
    if (!who.empty()) {
      throw StageError(label + " would overwrite " + output_name(i) + ", which " + who);
    }
  }
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    const Stage& other = stages_[i];
    if (i == number || !other.is_running) { continue; }
    if (meet(stage.written, other.touched) || meet(other.written, stage.touched)) {
      throw StageError(label + " shares memory with stage " + name_of(i) +
                       ", which is not done; run that to its end, or skip it");
    }
  }
  for (auto& output : outputs_) {
    const bool is_own = output.stage == number;
    if (is_own || meet(stage.written, output.bytes)) { output.is_there = false; }
  }
  stage.is_running = true;
}

void StageGuard::end(std::size_t number) {
  note_read(number);
  for (std::size_t i = stages_[number].ranges.outputs.first; i < stages_[number].ranges.outputs.end;
       ++i) {
    outputs_[i].is_there = true;
    std::fill(outputs_[i].has_read.begin(), outputs_[i].has_read.end(), false);
  }
}

void StageGuard::skip(std::size_t number) { note_read(number); }

void StageGuard::finish() {
  for (auto& stage : stages_) { stage.is_running = false; }
  for (auto& output : outputs_) { output.is_there = false; }
}

void StageGuard::note_read(std::size_t number) {
  stages_[number].is_running = false;
  for (const auto each : stages_[number].reads) {
    auto& output = outputs_[each];
    for (std::size_t i = 0; i < output.readers.size(); ++i) {
      if (output.readers[i] == number) { output.has_read[i] = true; }
    }
  }
}

}  // namespace arenite
