#include "validation.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "errors.hpp"
#include "utf8.hpp"

namespace arenite {

namespace {

using program::Place;
using program::Program;
using program::Type;

constexpr std::size_t kMaxRank = 16;
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
  const std::uint64_t limit = view.is_constant ? program.weights_size() : program.arena_size();
  const std::uint64_t size = tensor.coded_size() != 0 ? tensor.coded_size() : view.size;
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
  for (std::size_t axis = 0; axis < count(tensor.shape()); ++axis) {
    const auto length = tensor.shape()->Get(static_cast<flatbuffers::uoffset_t>(axis));
    view.shape.push_back(static_cast<std::size_t>(length));
  }
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

struct Extent {
  std::uint64_t begin;
  std::uint64_t end;
};

// The records, by step: which bytes are live.
class LiveRecords {
 public:
  explicit LiveRecords(const Program& program) : program_(program) {
    const std::size_t num_steps = std::max<std::size_t>(program.steps()->size(), 1);
    starting_.resize(num_steps);
    ending_.resize(num_steps + 1);
    const auto& records = *program.records();
    for (flatbuffers::uoffset_t i = 0; i < records.size(); ++i) {
      const auto& record = *records.Get(i);
      if (record.start() >= record.end() || record.end() > num_steps) {
        refuse("record " + quoted(record.name()) + " lives at steps " +
               std::to_string(record.start()) + " to " + std::to_string(record.end()) + " of " +
               std::to_string(num_steps));
      }
      if (record.size() == 0 || record.size() > program.arena_size() ||
          record.offset() > program.arena_size() - record.size()) {
        refuse("record " + quoted(record.name()) + " lies outside the arena of " +
               std::to_string(program.arena_size()) + " B");
      }
      starting_[record.start()].push_back(i);
      ending_[record.end()].push_back(i);
    }
  }

  void enter(std::size_t step) {
    const auto& records = *program_.records();
    if (step < ending_.size()) {
      for (const auto i : ending_[step]) {
        live_.erase(records.Get(i)->offset());
      }
    }
    if (step >= starting_.size()) {
      return;
    }
    for (const auto i : starting_[step]) {
      const auto& record = *records.Get(i);
      const Extent extent{record.offset(), record.offset() + record.size()};
      auto above = live_.lower_bound(extent.begin);
      const bool hits_above = above != live_.end() && above->first < extent.end;
      const bool hits_below = above != live_.begin() && std::prev(above)->second > extent.begin;
      if (hits_above || hits_below) {
        refuse("record " + quoted(record.name()) + " shares bytes with another at step " +
               std::to_string(step) + ": the plan is wrong, plan the model again");
      }
      live_.emplace(extent.begin, extent.end);
    }
  }

  bool hold(std::uint64_t begin, std::uint64_t end) const {
    const auto above = live_.upper_bound(begin);
    return above != live_.begin() && std::prev(above)->second >= end;
  }

 private:
  const Program& program_;
  std::vector<std::vector<flatbuffers::uoffset_t>> starting_;
  std::vector<std::vector<flatbuffers::uoffset_t>> ending_;
  std::map<std::uint64_t, std::uint64_t> live_;
};

class Checker {
 public:
  Checker(const Program& program, const std::vector<TensorView>& tensors)
      : program_(program), tensors_(tensors), records_(program) {}

  void check() {
    check_states();
    check_ports(*program_.inputs(), "input");
    check_ports(*program_.outputs(), "output");
    const std::size_t num_steps = program_.steps()->size();
    for (std::size_t step = 0; step < std::max<std::size_t>(num_steps, 1); ++step) {
      records_.enter(step);
      if (step == 0) {
        require_live(*program_.inputs(), step);
      }
      if (step < num_steps) {
        check_step(*program_.steps()->Get(static_cast<flatbuffers::uoffset_t>(step)), step);
      }
      if (step + 1 >= num_steps) {
        require_live(*program_.outputs(), step);
      }
    }
  }

 private:
  void check_index(std::int64_t index, const std::string& what) const {
    if (index < 0 || static_cast<std::size_t>(index) >= tensors_.size()) {
      refuse(what + " is tensor " + std::to_string(index) + " of " +
             std::to_string(tensors_.size()));
    }
  }

  void check_step(const program::Step& step, std::size_t number) const {
    const std::string label = "step " + quoted(step.name());
    if (const auto* external = step.kernel_as_External()) {
      check_index(external->model(), label + ": its model");
      require_plain(external->model(), label + ": its model");
    }
    for (std::size_t i = 0; i < count(step.inputs()); ++i) {
      const auto index = step.inputs()->Get(static_cast<flatbuffers::uoffset_t>(i));
      if (index == -1) {
        continue;
      }
      check_index(index, label + ": an input");
      if (step.kernel_type() == program::Operator::External) {
        require_plain(index, label);
      }
      require_live(index, number, label);
    }
    for (std::size_t i = 0; i < count(step.outputs()); ++i) {
      const auto index = step.outputs()->Get(static_cast<flatbuffers::uoffset_t>(i));
      check_index(index, label + ": an output");
      if (tensors_[static_cast<std::size_t>(index)].is_constant) {
        refuse(label + " writes a constant");
      }
      require_live(index, number, label);
    }
    if (step.scratch() != -1) {
      check_index(step.scratch(), label + ": its working memory");
      if (tensors_[static_cast<std::size_t>(step.scratch())].is_constant) {
        refuse(label + " works in a constant");
      }
      require_live(step.scratch(), number, label);
    }
  }

  // Who reads the bytes themselves must not be given a code.
  void require_plain(std::int64_t index, const std::string& label) const {
    if (tensors_[static_cast<std::size_t>(index)].coded_size != 0) {
      refuse(label + " is a coded constant");
    }
  }

  void require_live(std::int64_t index, std::size_t step, const std::string& label) const {
    const auto& view = tensors_[static_cast<std::size_t>(index)];
    const auto& tensor = *program_.tensors()->Get(static_cast<flatbuffers::uoffset_t>(index));
    if (view.is_constant || view.size == 0) {
      return;
    }
    if (!records_.hold(tensor.offset(), tensor.offset() + view.size)) {
      refuse(label + ": tensor " + quoted(tensor.name()) +
             " lies in no record that is live at step " + std::to_string(step));
    }
  }

  using Ports = flatbuffers::Vector<flatbuffers::Offset<program::Port>>;

  void require_live(const Ports& ports, std::size_t step) const {
    for (const auto* port : ports) {
      require_live(port->tensor(), step, "port " + quoted(port->name()));
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
      if (what == "input" && view.is_constant) {
        refuse(label + " is a constant");
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

  void check_states() const {
    for (std::size_t i = 0; i < count(program_.states()); ++i) {
      const auto& state = *program_.states()->Get(static_cast<flatbuffers::uoffset_t>(i));
      check_index(state.tensor(), "a state");
      const auto& view = tensors_[static_cast<std::size_t>(state.tensor())];
      if (view.is_constant) {
        refuse("a state is a constant");
      }
      if (state.initial() == -1) {
        continue;
      }
      check_index(state.initial(), "the start of a state");
      require_plain(state.initial(), "the start of a state");
      const auto& initial = tensors_[static_cast<std::size_t>(state.initial())];
      if (!initial.is_constant || initial.size != view.size) {
        refuse("the start of a state is not a constant of its size");
      }
    }
  }

  const Program& program_;
  const std::vector<TensorView>& tensors_;
  LiveRecords records_;
};

void check_text(const flatbuffers::String* text) {
  if (text != nullptr && !is_utf8({text->c_str(), text->size()})) {
    refuse("a name is not UTF-8 text");
  }
}

template <typename T>
void check_names(const flatbuffers::Vector<flatbuffers::Offset<T>>* named) {
  if (named != nullptr) {
    for (const auto* each : *named) {
      check_text(each->name());
    }
  }
}

// FlatBuffers' verifier does not look where the elements of a vector lie. Without elements they
// may lie anywhere.
template <typename T>
void check_aligned(const flatbuffers::Vector<T>* vector) {
  if (vector != nullptr && vector->size() != 0 &&
      reinterpret_cast<std::uintptr_t>(vector->Data()) % sizeof(T) != 0) {
    refuse("the program is damaged: a list of numbers is not aligned");
  }
}

void check_alignment(const Program& program) {
  for (const auto* tensor : *program.tensors()) {
    check_aligned(tensor->shape());
  }
  for (const auto* ports : {program.inputs(), program.outputs()}) {
    for (const auto* port : *ports) {
      check_aligned(port->shape());
    }
  }
  for (const auto* step : *program.steps()) {
    const auto* copy = step->kernel_as_Copy();
    if (copy == nullptr || copy->moves() == nullptr) {
      continue;
    }
    for (const auto* move : *copy->moves()) {
      check_aligned(move->shape());
      check_aligned(move->input_strides());
      check_aligned(move->output_strides());
    }
  }
}

void check_all_names(const Program& program) {
  check_text(program.name());
  check_text(program.digest());
  check_text(program.producer());
  check_names(program.tensors());
  check_names(program.steps());
  check_names(program.inputs());
  check_names(program.outputs());
  check_names(program.records());
  for (const auto* step : *program.steps()) {
    const auto* external = step->kernel_as_External();
    if (external == nullptr) {
      continue;
    }
    check_text(external->runtime());
    for (const auto* names : {external->input_names(), external->output_names()}) {
      if (names != nullptr) {
        for (const auto* name : *names) {
          check_text(name);
        }
      }
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
  check_alignment(program);
  check_all_names(program);
  if (program.arena_size() > kMaxBytes) {
    refuse("an arena of " + std::to_string(program.arena_size()) + " B is beyond this machine");
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
