#include "validation.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>

#include "arena.hpp"
#include "checking.hpp"
#include "lanes.hpp"
#include "live_records.hpp"
#include "mapped_file.hpp"
#include "program_text.hpp"
#include "sizes.hpp"
#include "stages.hpp"
#include "tensor_checks.hpp"
#include "turn_checks.hpp"
#include "turns.hpp"
#include "updated_inputs.hpp"

namespace arenite {

namespace {

using program::Program;
using program::Type;

constexpr std::size_t kMaxMemories = 16;
constexpr std::uint64_t kMaxPadding = Arena::kMaxAlignment;  // between two tensors

class Checker {
 public:
  Checker(const Program& program, const std::vector<TensorView>& tensors)
      : program_(program),
        tensors_(tensors),
        records_(program),
        turns_(program, tensors, records_) {}

  std::vector<Room> check() {
    records_.enter(0);
    check_states();
    check_ports(*program_.inputs(), "input");
    check_ports(*program_.outputs(), "output");
    for (const auto* step : *program_.steps()) { check_step(*step); }
    TurnCursor turn(program_);
    for (const auto& stage : stages_of(program_)) {
      for (std::size_t index = stage.turns.first; index < stage.turns.end; ++index) {
        if (index > 0) { records_.enter(index); }
        if (index == stage.turns.first) { require_live(*program_.inputs(), stage.inputs, index); }
        if (turn.is_at_end()) { break; }  // the program has none
        turns_.check(*turn, index);
        turn.next();
      }
      require_live(*program_.outputs(), stage.outputs, stage.turns.end - 1);
    }
    turns_.finish();
    return turns_.rooms();
  }

 private:
  void check_index(std::int64_t index, const std::string& what) const {
    if (index < 0 || static_cast<std::size_t>(index) >= tensors_.size()) {
      refuse(what + " is tensor " + std::to_string(index) + " of " +
             std::to_string(tensors_.size()));
    }
  }

  void check_step(const program::Step& step) const {
    const std::string label = "step " + quoted(step.name());
    if (const auto* external = step.kernel_as_External()) {
      check_external(*external, step, label);
    }
    for (std::size_t i = 0; i < count(step.inputs()); ++i) {
      const auto index = step.inputs()->Get(static_cast<flatbuffers::uoffset_t>(i));
      if (index == -1 && step.kernel_type() != program::Operator::External) { continue; }
      check_index(index, label + ": an input");
      if (!(step.kernel_type() == program::Operator::Fetch && i == 0)) {
        require_unspilled(index, label);
      }
      if (step.kernel_type() == program::Operator::External) {
        require_plain(index, label);
        require_contiguous(index, label);
      }
    }
    for (const auto position : updated_inputs(step)) {
      if (position < count(step.inputs())) {
        check_updated(step.inputs()->Get(static_cast<flatbuffers::uoffset_t>(position)), label);
      }
    }
    for (std::size_t i = 0; i < count(step.outputs()); ++i) {
      const auto index = step.outputs()->Get(static_cast<flatbuffers::uoffset_t>(i));
      check_written(index, label, "an output");
      if (!(step.kernel_type() == program::Operator::Spill && i == 0)) {
        require_unspilled(index, label);
      }
      if (step.kernel_type() == program::Operator::External) { require_contiguous(index, label); }
    }
    if (step.scratch() != -1) {
      check_index(step.scratch(), label + ": its working memory");
      const auto& scratch = tensors_[static_cast<std::size_t>(step.scratch())];
      if (scratch.is_constant || scratch.type != Type::uint8) {
        refuse(label + " has working memory that is a constant or not uint8");
      }
      check_written(step.scratch(), label, "its working memory");
      require_contiguous(step.scratch(), label + ": its working memory");
      require_unspilled(step.scratch(), label + ": its working memory");
    }
    check_lane(step, label);
  }

  void check_lane(const program::Step& step, const std::string& label) const {
    if (step.lane() > kBeside) {
      refuse(label + " is on lane " + std::to_string(step.lane()) + " of " +
             std::to_string(kBeside + 1));
    }
    if (runs_beside(step) && !may_run_beside(step)) {
      refuse(label + " computes on a lane of its own, supported: moving tensors");
    }
    if (step.kernel_type() == program::Operator::External && count(step.awaits()) != 0) {
      refuse(label + " awaits steps, unsupported in ONNX Runtime");
    }
    if (runs_beside(step) && count(step.awaits()) != 0) {
      refuse(label + " awaits steps on a lane that runs in order");
    }
    for (std::size_t i = 0; i < count(step.awaits()); ++i) {
      const auto awaited = step.awaits()->Get(static_cast<flatbuffers::uoffset_t>(i));
      if (awaited >= program_.steps()->size()) {
        refuse(label + " awaits step " + std::to_string(awaited) + " of " +
               std::to_string(program_.steps()->size()));
      }
      const auto& other = *program_.steps()->Get(awaited);
      if (!runs_beside(other)) {
        refuse(label + " awaits step " + quoted(other.name()) + ", which is on its own lane");
      }
    }
  }

  void check_external(const program::External& external, const program::Step& step,
                      const std::string& label) const {
    if (external.runtime() == nullptr || external.runtime()->str() != "onnxruntime") {
      refuse(label + " names an unknown runtime; known: 'onnxruntime'");
    }
    check_index(external.model(), label + ": its model");
    require_plain(external.model(), label + ": its model");
    if (!tensors_[static_cast<std::size_t>(external.model())].is_constant) {
      refuse(label + ": its model is not a constant");
    }
    if (count(step.inputs()) != count(external.input_names()) ||
        count(step.outputs()) != count(external.output_names())) {
      refuse(label + " does not name all of its tensors");
    }
  }

  // A step writes it: not among the weights, and in a memory that may be written.
  void require_writable(std::int64_t index, const std::string& label) const {
    if (tensors_[static_cast<std::size_t>(index)].is_constant) {
      refuse(label + " writes a constant");
    }
    const auto& tensor = stated(index);
    const auto& memory = *program_.memories()->Get(tensor.memory());
    if (!memory.writable()) {
      refuse(label + " writes tensor " + quoted(tensor.name()) + " in memory " +
             quoted(memory.name()) + ", which is not writable");
    }
  }

  void check_written(std::int64_t index, const std::string& label, const char* what) const {
    check_index(index, label + ": " + what);
    require_writable(index, label);
  }

  // What a step updates is kept between runs, so nobody else expects it as it was.
  void check_updated(std::int64_t index, const std::string& label) const {
    if (index == -1) {
      return;  // whether it may be left out is for the operator to say
    }
    require_writable(index, label);
    const auto& tensor = stated(index);
    const auto& view = tensors_[static_cast<std::size_t>(index)];
    if (view.size != 0 && states_.count({tensor.memory(), tensor.offset(), view.size}) == 0) {
      refuse(label + " updates tensor " + quoted(tensor.name()) + ", which is not a state");
    }
  }

  // Who reads the bytes themselves must not be given a code.
  void require_plain(std::int64_t index, const std::string& label) const {
    if (tensors_[static_cast<std::size_t>(index)].coded_size != 0) {
      refuse(label + " is a coded constant");
    }
  }

  // Who reads or writes it all at once must not be given rows that lie apart.
  void require_contiguous(std::int64_t index, const std::string& label) const {
    if (tensors_[static_cast<std::size_t>(index)].rows != nullptr) {
      refuse(label + " lies row by row");
    }
  }

  // Who computes with it must not be given what may lie in a file.
  void require_unspilled(std::int64_t index, const std::string& label) const {
    if (tensors_[static_cast<std::size_t>(index)].is_spilled) {
      refuse(label + " touches tensor " + quoted(stated(index).name()) +
             ", which is spilled and can only be fetched");
    }
  }

  using Ports = flatbuffers::Vector<flatbuffers::Offset<program::Port>>;

  void require_live(const Ports& ports, Span some, std::size_t turn) {
    for (std::size_t i = some.first; i < some.end; ++i) {
      const auto& port = *ports.Get(static_cast<flatbuffers::uoffset_t>(i));
      const std::string label = "port " + quoted(port.name());
      turns_.require_live(port.tensor(), turn, label, TurnChecks::Use::held);
    }
  }

  void check_ports(const Ports& ports, const std::string& what) const {
    std::set<std::string> names;
    for (const auto* port : ports) {
      const std::string label = what + " " + quoted(port->name());
      if (!names.insert(port->name()->str()).second) { refuse(label + " has a duplicate name"); }
      check_index(port->tensor(), label);
      const auto& view = tensors_[static_cast<std::size_t>(port->tensor())];
      require_plain(port->tensor(), label);
      require_contiguous(port->tensor(), label);
      require_unspilled(port->tensor(), label);
      require_type(view, label);
      if (what == "input" && view.is_constant) { refuse(label + " is a constant"); }
      if (what == "input") { require_writable(port->tensor(), label); }
      const std::size_t rank = view.rank();
      if (count(port->shape()) != rank || count(port->permutation()) != rank) {
        refuse(label + " has another rank than its tensor");
      }
      std::vector<bool> seen(rank);
      for (flatbuffers::uoffset_t i = 0; i < rank; ++i) {
        const std::size_t axis = port->permutation()->Get(i);
        if (axis >= rank || seen[axis] ||
            port->shape()->Get(static_cast<flatbuffers::uoffset_t>(axis)) != view.shape[i]) {
          refuse(label + " has a shape that is not its tensor's with the axes permuted");
        }
        seen[axis] = true;
      }
    }
  }

  static void require_type(const TensorView& view, const std::string& label) {
    if (view.type == program::Type::bfloat16) {
      refuse(label + " is of bfloat16, which is supported for weights alone");
    }
  }

  const program::Tensor& stated(std::int64_t index) const {
    return *program_.tensors()->Get(static_cast<flatbuffers::uoffset_t>(index));
  }

  void check_states() {
    for (std::size_t i = 0; i < count(program_.states()); ++i) {
      const auto& state = *program_.states()->Get(static_cast<flatbuffers::uoffset_t>(i));
      check_index(state.tensor(), "a state");
      const auto& view = tensors_[static_cast<std::size_t>(state.tensor())];
      if (view.is_constant) { refuse("a state is a constant"); }
      check_initial(state, view);
      const auto& tensor = stated(state.tensor());
      const std::string label = "state " + quoted(tensor.name());
      require_contiguous(state.tensor(), label);
      require_unspilled(state.tensor(), label);
      require_type(view, label);
      require_writable(state.tensor(), label);
      if (view.size != 0 && !records_.hold_throughout(
                                {tensor.memory(), tensor.offset(), tensor.offset() + view.size})) {
        refuse(label + " lies in no record that is live throughout");
      }
      states_.insert({tensor.memory(), tensor.offset(), view.size});
    }
  }

  void check_initial(const program::State& state, const TensorView& view) const {
    if (state.initial() == -1) { return; }
    check_index(state.initial(), "the start of a state");
    require_plain(state.initial(), "the start of a state");
    const auto& initial = tensors_[static_cast<std::size_t>(state.initial())];
    if (!initial.is_constant || initial.size != view.size) {
      refuse("the start of a state is not a constant of its size");
    }
  }

  const Program& program_;
  const std::vector<TensorView>& tensors_;
  LiveRecords records_;
  TurnChecks turns_;
  std::set<std::tuple<std::size_t, std::uint64_t, std::size_t>> states_;  // memory, offset, bytes
};

void check_memories(const Program& program) {
  const auto& memories = *program.memories();
  if (memories.size() == 0 || memories.size() > kMaxMemories) {
    refuse("a program has 1 to " + std::to_string(kMaxMemories) + " memories, not " +
           std::to_string(memories.size()));
  }
  std::set<std::string> names;
  std::uint64_t total = 0;
  for (const auto* memory : memories) {
    const std::string label = "memory " + quoted(memory->name());
    if (!names.insert(memory->name()->str()).second) { refuse(label + " has a duplicate name"); }
    const std::uint32_t alignment = memory->alignment();
    if (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > Arena::kMaxAlignment) {
      refuse(label + " is aligned to " + std::to_string(alignment) +
             " B, expected a power of two up to " + std::to_string(Arena::kMaxAlignment));
    }
    // Each is at most kMaxBytes, of which 16 fit the sum.
    total += std::min(memory->size(), kMaxBytes + 1);
    if (total > kMaxBytes) {
      refuse(label + " of " + std::to_string(memory->size()) + " B is beyond this machine");
    }
  }
}

// A file takes its bytes on the device at once: no more than tensors can fill.
void check_spilled(const Program& program, const std::vector<TensorView>& tensors) {
  std::vector<std::uint64_t> filled(program.memories()->size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].is_spilled) {
      const auto& tensor = *program.tensors()->Get(static_cast<flatbuffers::uoffset_t>(i));
      auto& total = filled[tensor.memory()];
      total = std::min<std::uint64_t>(total + tensors[i].size + kMaxPadding, kMaxBytes);
    }
  }
  for (flatbuffers::uoffset_t i = 0; i < filled.size(); ++i) {
    const auto& memory = *program.memories()->Get(i);
    if (memory.spilled() && memory.size() > filled[i]) {
      refuse("memory " + quoted(memory.name()) + " has " + std::to_string(memory.size()) +
             " B for spilled tensors, more than they take");
    }
  }
}

}  // namespace

std::vector<TensorView> validated_tensors(const Program& program, std::vector<Room>& rooms) {
  check_text_and_alignment(program);
  check_memories(program);
  if (program.weights_size() < MappedFile::kSlack) {
    refuse("the weights have " + std::to_string(program.weights_size()) + " B, without the " +
           std::to_string(MappedFile::kSlack) + " B behind the last");
  }
  std::vector<TensorView> tensors;
  tensors.reserve(program.tensors()->size());
  for (const auto* tensor : *program.tensors()) {
    tensors.push_back(checked_tensor(program, *tensor));
  }
  check_spilled(program, tensors);
  check_loops(program);
  check_stages(program);
  rooms = Checker(program, tensors).check();
  check_sizes(program, tensors, rooms);
  return tensors;
}

}  // namespace arenite
