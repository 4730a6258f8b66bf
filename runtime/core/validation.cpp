#include "validation.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <tuple>

#include "arena.hpp"
#include "errors.hpp"
#include "live_records.hpp"
#include "mapped_file.hpp"
#include "program_text.hpp"
#include "turn_checks.hpp"
#include "turns.hpp"

namespace arenite {

namespace {

using program::Place;
using program::Program;
using program::Type;

constexpr std::size_t kMaxRank = 16;
constexpr std::size_t kMaxMemories = 16;
// What can be addressed with room to spare: 64 TiB, and 1 GiB where addresses have 32 bits.
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << (sizeof(std::size_t) > 4 ? 46 : 30);

[[noreturn]] void refuse(const std::string& reason) { throw ProgramError(reason); }

std::string quoted(const flatbuffers::String* name) { return "'" + name->str() + "'"; }

template <typename T>
std::size_t count(const flatbuffers::Vector<T>* vector) {
  return vector == nullptr ? 0 : vector->size();
}

// Product of the shape and the size of an element, or a refusal.
std::size_t checked_size(const program::Tensor& tensor) {
  std::uint64_t bytes = element_size(tensor.type());
  for (std::size_t axis = 0; axis < count(tensor.shape()); ++axis) {
    const std::uint64_t length = tensor.shape()->Get(static_cast<flatbuffers::uoffset_t>(axis));
    if (length > kMaxBytes || (length != 0 && bytes > kMaxBytes / length)) {
      refuse("tensor " + quoted(tensor.name()) + " is too large");
    }
    bytes *= length;
  }
  return static_cast<std::size_t>(bytes);
}

// Bytes that a tensor must lie inside.
std::uint64_t checked_limit(const Program& program, const program::Tensor& tensor,
                            const std::string& label) {
  if (tensor.place() == Place::weights) {
    // Kernels read past the end of what they are given.
    return program.weights_size() -
           std::min<std::uint64_t>(program.weights_size(), MappedFile::kSlack);
  }
  if (tensor.memory() >= program.memories()->size()) {
    refuse(label + " lies in memory " + std::to_string(tensor.memory()) + " of " +
           std::to_string(program.memories()->size()));
  }
  return program.memories()->Get(tensor.memory())->size();
}

// Refuses rows that are not all there, or lie outside the memory.
void check_rows(const program::Tensor& tensor, const TensorView& view, std::uint64_t limit,
                const std::string& label) {
  const auto& rows = *tensor.rows();
  if (view.is_constant) {
    refuse(label + " is a constant that lies row by row");
  }
  if (tensor.offset() != 0) {
    refuse(label + " lies row by row, and at an offset too");
  }
  if (view.rank() < 2 || view.shape[0] != 1 || view.shape[1] != rows.size()) {
    refuse(label + " states where " + std::to_string(rows.size()) +
           " rows lie, which it does not have");
  }
  const std::uint64_t size = view.size / rows.size();
  for (flatbuffers::uoffset_t row = 0; row < rows.size(); ++row) {
    const std::uint64_t offset = rows.Get(row);
    const std::string which = label + ", row " + std::to_string(row) + ",";
    if (offset > limit || size > limit - offset) {
      refuse(which + " lies at bytes " + std::to_string(offset) + " on, outside the " +
             std::to_string(limit) + " B of its place");
    }
    if (offset % element_size(tensor.type()) != 0) {
      refuse(which + " lies at byte " + std::to_string(offset) + ", between two of its elements");
    }
  }
}

TensorView checked_tensor(const Program& program, const program::Tensor& tensor) {
  const std::string label = "tensor " + quoted(tensor.name());
  if (tensor.type() > Type::MAX || tensor.place() > Place::MAX) {
    refuse(label + " has an unknown type or place");
  }
  if (count(tensor.shape()) > kMaxRank) {
    refuse(label + " has " + std::to_string(count(tensor.shape())) + " axes; at most " +
           std::to_string(kMaxRank) + " can be run");
  }
  TensorView view;
  view.type = tensor.type();
  view.size = checked_size(tensor);
  view.is_constant = tensor.place() == Place::weights;
  if (tensor.coded_size() != 0 && (!view.is_constant || view.type != Type::float32)) {
    refuse(label + " is coded, and no constant of 32-bit floats");
  }
  for (std::size_t axis = 0; axis < count(tensor.shape()); ++axis) {
    const auto length = tensor.shape()->Get(static_cast<flatbuffers::uoffset_t>(axis));
    view.shape.push_back(static_cast<std::size_t>(length));
  }
  const std::uint64_t limit = checked_limit(program, tensor, label);
  if (count(tensor.rows()) > 0) {
    check_rows(tensor, view, limit, label);
    view.rows = tensor.rows()->data();
  }
  const std::uint64_t size = tensor.coded_size() != 0 ? tensor.coded_size()
                             : view.rows != nullptr   ? 0
                                                      : view.size;
  if (tensor.offset() > limit || size > limit - tensor.offset()) {
    refuse(label + " lies at bytes " + std::to_string(tensor.offset()) + " to " +
           std::to_string(tensor.offset() + size) + ", outside the " + std::to_string(limit) +
           " B of its place");
  }
  if (tensor.offset() % element_size(tensor.type()) != 0) {
    refuse(label + " lies at byte " + std::to_string(tensor.offset()) +
           ", between two of its elements");
  }
  view.coded_size = static_cast<std::size_t>(tensor.coded_size());
  if (tensor.scales() != nullptr && tensor.scales()->size() > 0) {
    const auto& scales = *tensor.scales();
    const bool by_channel = scales.size() > 1;
    if (by_channel &&
        (tensor.axis() >= view.rank() || view.shape[tensor.axis()] != scales.size())) {
      refuse(label + " has " + std::to_string(scales.size()) + " scales, not one for each index");
    }
    for (const float scale : scales) {
      if (!(std::isfinite(scale) && scale > 0)) {
        refuse(label + " has a scale that is not above 0");
      }
    }
    view.scales.assign(scales.begin(), scales.end());
    const bool is_signed = view.type == Type::int8;
    const std::int32_t lowest = is_signed ? -128 : view.type == Type::uint8 ? 0 : -32768;
    const std::int32_t highest = is_signed ? 127 : view.type == Type::uint8 ? 255 : 32767;
    if (tensor.zero_point() < lowest || tensor.zero_point() > highest) {
      refuse(label + " has a zero point that none of its elements can be");
    }
    view.zero_point = tensor.zero_point();
    view.axis = tensor.axis();
  }
  return view;
}

// Positions of the inputs that a step writes too.
std::vector<std::size_t> updated_inputs(const program::Step& step) {
  if (step.kernel_type() == program::Operator::Svdf) {
    return {4};
  }
  const auto* lstm = step.kernel_as_Lstm();
  return lstm != nullptr && lstm->keeps_state() ? std::vector<std::size_t>{4, 5}
                                                : std::vector<std::size_t>{};
}

class Checker {
 public:
  Checker(const Program& program, const std::vector<TensorView>& tensors)
      : program_(program),
        tensors_(tensors),
        records_(program),
        turns_(program, tensors, records_) {}

  void check() {
    records_.enter(0);
    check_states();
    check_ports(*program_.inputs(), "input");
    check_ports(*program_.outputs(), "output");
    for (const auto* step : *program_.steps()) {
      check_step(*step);
    }
    const std::size_t num_turns = arenite::num_turns(program_);
    require_live(*program_.inputs(), 0);
    for (std::size_t turn = 0; turn < num_turns; ++turn) {
      if (turn > 0) {
        records_.enter(turn);
      }
      turns_.check(turn);
    }
    turns_.finish();
    require_live(*program_.outputs(), std::max<std::size_t>(num_turns, 1) - 1);
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
      if (index == -1 && step.kernel_type() != program::Operator::External) {
        continue;
      }
      check_index(index, label + ": an input");
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
      if (step.kernel_type() == program::Operator::External) {
        require_contiguous(index, label);
      }
    }
    if (step.scratch() != -1) {
      check_index(step.scratch(), label + ": its working memory");
      const auto& scratch = tensors_[static_cast<std::size_t>(step.scratch())];
      if (scratch.is_constant || scratch.type != Type::uint8) {
        refuse(label + " works in a constant, or in what is not bytes");
      }
      check_written(step.scratch(), label, "its working memory");
      require_contiguous(step.scratch(), label + ": its working memory");
    }
  }

  void check_external(const program::External& external, const program::Step& step,
                      const std::string& label) const {
    if (external.runtime() == nullptr || external.runtime()->str() != "onnxruntime") {
      refuse(label + " is of a runtime that is not known; there is 'onnxruntime'");
    }
    check_index(external.model(), label + ": its model");
    require_plain(external.model(), label + ": its model");
    if (!tensors_[static_cast<std::size_t>(external.model())].is_constant) {
      refuse(label + ": its model is not a constant");
    }
    if (count(step.inputs()) != count(external.input_names()) ||
        count(step.outputs()) != count(external.output_names())) {
      refuse(label + " does not name each of its tensors");
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

  using Ports = flatbuffers::Vector<flatbuffers::Offset<program::Port>>;

  void require_live(const Ports& ports, std::size_t turn) const {
    for (const auto* port : ports) {
      turns_.require_live(port->tensor(), turn, "port " + quoted(port->name()));
    }
  }

  void check_ports(const Ports& ports, const std::string& what) const {
    std::set<std::string> names;
    for (const auto* port : ports) {
      const std::string label = what + " " + quoted(port->name());
      if (!names.insert(port->name()->str()).second) {
        refuse(label + " is there twice");
      }
      check_index(port->tensor(), label);
      const auto& view = tensors_[static_cast<std::size_t>(port->tensor())];
      require_plain(port->tensor(), label);
      require_contiguous(port->tensor(), label);
      if (what == "input" && view.is_constant) {
        refuse(label + " is a constant");
      }
      if (what == "input") {
        require_writable(port->tensor(), label);
      }
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

  const program::Tensor& stated(std::int64_t index) const {
    return *program_.tensors()->Get(static_cast<flatbuffers::uoffset_t>(index));
  }

  void check_states() {
    for (std::size_t i = 0; i < count(program_.states()); ++i) {
      const auto& state = *program_.states()->Get(static_cast<flatbuffers::uoffset_t>(i));
      check_index(state.tensor(), "a state");
      const auto& view = tensors_[static_cast<std::size_t>(state.tensor())];
      if (view.is_constant) {
        refuse("a state is a constant");
      }
      check_initial(state, view);
      const auto& tensor = stated(state.tensor());
      const std::string label = "state " + quoted(tensor.name());
      require_contiguous(state.tensor(), label);
      require_writable(state.tensor(), label);
      if (view.size != 0 && !records_.hold_throughout(
                                {tensor.memory(), tensor.offset(), tensor.offset() + view.size})) {
        refuse(label + " lies in no record that is live throughout");
      }
      states_.insert({tensor.memory(), tensor.offset(), view.size});
    }
  }

  void check_initial(const program::State& state, const TensorView& view) const {
    if (state.initial() == -1) {
      return;
    }
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
    if (!names.insert(memory->name()->str()).second) {
      refuse(label + " is there twice");
    }
    const std::uint32_t alignment = memory->alignment();
    if (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > Arena::kMaxAlignment) {
      refuse(label + " is aligned to " + std::to_string(alignment) +
             " B, which is no power of two up to " + std::to_string(Arena::kMaxAlignment));
    }
    // Each is at most kMaxBytes, of which 16 fit the sum.
    total += std::min(memory->size(), kMaxBytes + 1);
    if (total > kMaxBytes) {
      refuse(label + " of " + std::to_string(memory->size()) + " B is beyond this machine");
    }
  }
}

}  // namespace

std::size_t element_size(Type type) {
  switch (type) {
    case Type::int8:
    case Type::uint8:
    case Type::boolean:
      return 1;
    case Type::float16:
    case Type::int16:
      return 2;
    case Type::float32:
    case Type::int32:
      return 4;
    case Type::int64:
      return 8;
  }
  return 1;
}

std::vector<TensorView> validated_tensors(const Program& program) {
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
  Checker(program, tensors).check();
  return tensors;
}

}  // namespace arenite
