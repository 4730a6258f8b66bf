// The core as the Python module `arenite.runtime._core`.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "errors.hpp"
#include "interruption.hpp"
#include "processor_name.hpp"
#include "registry.hpp"
#include "session.hpp"
#include "sizes.hpp"
#include "stage_guard.hpp"
#include "validation.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace arenite {

namespace {

nb::dlpack::dtype dtype_of(program::Type type) {
  switch (type) {
    case program::Type::float32: return nb::dtype<float>();
    case program::Type::float16:
      return {static_cast<std::uint8_t>(nb::dlpack::dtype_code::Float), 16, 1};
    case program::Type::int8: return nb::dtype<std::int8_t>();
    case program::Type::uint8: return nb::dtype<std::uint8_t>();
    case program::Type::int16: return nb::dtype<std::int16_t>();
    case program::Type::int32: return nb::dtype<std::int32_t>();
    case program::Type::int64: return nb::dtype<std::int64_t>();
    case program::Type::boolean: return nb::dtype<bool>();
    case program::Type::float64: return nb::dtype<double>();
    case program::Type::bfloat16: break;  // of no port and no state
  }
  return nb::dtype<std::uint8_t>();
}

const TensorView& checked(const Session& session, std::size_t index) {
  if (index >= session.num_tensors()) { throw nb::index_error("tensor index out of range"); }
  return session.tensor(index);
}

// Returns an array over a tensor, of this shape, read-only if it is constant.
nb::object array_over(nb::handle self, const TensorView& tensor, const std::size_t* shape,
                      const std::int64_t* strides = nullptr) {
  if (tensor.coded_size != 0) {
    throw nb::value_error("the tensor is a coded constant and not in memory");
  }
  if (tensor.is_spilled) {
    throw nb::value_error("the tensor is spilled and may not be in memory");
  }
  if (tensor.rows != nullptr) {
    throw nb::value_error("the rows of the tensor are not contiguous");
  }
  if (tensor.is_constant) {
    return nb::cast(nb::ndarray<nb::numpy, nb::ro>(tensor.data, tensor.rank(), shape, self, strides,
                                                   dtype_of(tensor.type)));
  }
  return nb::cast(nb::ndarray<nb::numpy>(tensor.data, tensor.rank(), shape, self, strides,
                                         dtype_of(tensor.type)));
}

nb::object view(nb::handle self, std::size_t index) {
  const auto& tensor = checked(nb::cast<const Session&>(self), index);
  return array_over(self, tensor, tensor.shape.data());
}

// Returns the name of each port and an array over its tensor, of the shape in the model. Each
// time sizes are set all are made again.
template <auto Stated>
nb::list ports(nb::handle self) {
  const auto& session = nb::cast<const Session&>(self);
  nb::list found;
  for (const auto* port : *(session.program().*Stated)()) {
    const auto& tensor = checked(session, static_cast<std::size_t>(port->tensor()));
    std::array<std::size_t, kMaxRank> shape;
    std::array<std::int64_t, kMaxRank> strides;
    std::int64_t stride = 1;
    for (std::size_t stored = tensor.rank(); stored-- > 0;) {
      const auto axis = port->permutation()->Get(static_cast<flatbuffers::uoffset_t>(stored));
      shape[axis] = tensor.shape[stored];
      strides[axis] = stride;
      stride *= static_cast<std::int64_t>(tensor.shape[stored]);
    }
    found.append(nb::make_tuple(port->name()->c_str(),
                                array_over(self, tensor, shape.data(), strides.data())));
  }
  return found;
}

// The caller keeps the array until the run has ended.
void lend(Session& session, std::size_t input, const nb::ndarray<nb::ro, nb::c_contig>& array) {
  const auto& inputs = *session.program().inputs();
  if (input >= inputs.size()) { throw nb::index_error("input index out of range"); }
  const auto index = inputs.Get(static_cast<flatbuffers::uoffset_t>(input))->tensor();
  if (array.nbytes() != session.tensor(static_cast<std::size_t>(index)).size) {
    throw nb::value_error("the array differs in size from the input");
  }
  session.lend(input, static_cast<const std::byte*>(array.data()));
}

void fetch(const Session& session, std::size_t output, const nb::ndarray<nb::c_contig>& array) {
  const auto& outputs = *session.program().outputs();
  if (output >= outputs.size()) { throw nb::index_error("output index out of range"); }
  const auto index = static_cast<flatbuffers::uoffset_t>(output);
  if (array.nbytes() != session.port_tensor(*outputs.Get(index)).size) {
    throw nb::value_error("the array differs in size from the output");
  }
  session.fetch(output, static_cast<std::byte*>(array.data()));
}

nb::bytes save(const Session& session) {
  std::vector<std::byte> saved(session.saved_size());
  session.save(saved.data());
  return nb::bytes(saved.data(), saved.size());
}

void load(Session& session, const nb::bytes& saved) {
  session.load(static_cast<const std::byte*>(saved.data()), saved.size());
}

// Names and tensors of what is kept from one run to the next, and the dimension that counts rows.
std::vector<std::tuple<std::string, int, int>> states(const Session& session) {
  std::vector<std::tuple<std::string, int, int>> found;
  if (session.program().states() != nullptr) {
    for (const auto* state : *session.program().states()) {
      const auto index = static_cast<flatbuffers::uoffset_t>(state->tensor());
      found.emplace_back(session.program().tensors()->Get(index)->name()->str(), state->tensor(),
                         state->rows());
    }
  }
  return found;
}

// Name, and the first and the last but one of its turns, inputs and outputs.
using StageInfo =
    std::tuple<std::string, std::pair<std::size_t, std::size_t>,
               std::pair<std::size_t, std::size_t>, std::pair<std::size_t, std::size_t>>;

// Of a single model there are none.
std::vector<StageInfo> stages(const Session& session) {
  std::vector<StageInfo> found;
  const auto* stated = session.program().stages();
  if (stated == nullptr || stated->size() == 0) { return found; }
  const auto pair = [](const Span& span) { return std::pair{span.first, span.end}; };
  for (const auto& each : stages_of(session.program())) {
    const auto* stage = stated->Get(static_cast<flatbuffers::uoffset_t>(found.size()));
    found.emplace_back(stage->name()->str(), pair(each.turns), pair(each.inputs),
                       pair(each.outputs));
  }
  return found;
}

void check_stage(const StageGuard& guard, std::size_t stage) {
  if (stage >= guard.num_stages()) { throw nb::index_error("stage index out of range"); }
}

struct ExternalStep {
  std::size_t turn;
  std::string name;
  int model;
  std::vector<std::string> input_names;
  std::vector<int> inputs;
  std::vector<std::string> output_names;
  std::vector<int> outputs;
};

// Name, lowest and highest value, step, the step that counts it, and whether it grows.
using DimensionInfo =
    std::tuple<std::string, std::uint64_t, std::uint64_t, std::uint64_t, std::string, bool>;

std::vector<DimensionInfo> dimensions(const Session& session) {
  std::vector<DimensionInfo> found;
  const auto& whole = session.file().program();
  if (has_dimensions(whole)) {
    for (const auto* each : *whole.dimensions()) {
      const auto step = static_cast<flatbuffers::uoffset_t>(each->counted_by());
      found.emplace_back(
          each->name()->str(), each->low(), each->high(), each->step(),
          is_counted(*each) ? whole.steps()->Get(step)->name()->str() : std::string(),
          grows(*each));
    }
  }
  return found;
}

std::vector<std::string> texts(
    const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>* given) {
  std::vector<std::string> found;
  if (given != nullptr) {
    for (const auto* text : *given) { found.push_back(text->str()); }
  }
  return found;
}

std::vector<int> indices(const flatbuffers::Vector<std::int32_t>* given) {
  return given == nullptr ? std::vector<int>{} : std::vector<int>(given->begin(), given->end());
}

// In the order of their turns, of which a step may have several.
std::vector<ExternalStep> external_steps(const Session& session) {
  std::vector<ExternalStep> found;
  const auto& steps = *session.program().steps();
  for (TurnCursor turn(session.program()); !turn.is_at_end(); turn.next()) {
    const auto& step = *steps.Get((*turn).step());
    const auto* external = step.kernel_as_External();
    if (external == nullptr) { continue; }
    found.push_back({turn.index(), step.name()->str(), external->model(),
                     texts(external->input_names()), indices(step.inputs()),
                     texts(external->output_names()), indices(step.outputs())});
  }
  return found;
}

std::vector<std::string> backends(const Session& session) {
  std::vector<std::string> found;
  for (std::size_t i = 0; i < session.num_steps(); ++i) {
    found.emplace_back(session.step(i) != nullptr ? "arenite" : "onnxruntime");
  }
  return found;
}

std::optional<std::pair<std::string, bool>> tuned_on(const Session& session) {
  if (session.tuning() == Tuning::none) { return std::nullopt; }
  return std::pair{session.program().tuned_on()->str(), session.tuning() == Tuning::here};
}

using StepProfile = std::tuple<std::string, std::string, std::string, std::int64_t, std::size_t>;

std::vector<StepProfile> profile(const Session& session) {
  std::vector<StepProfile> found;
  const auto names = backends(session);
  const auto nanoseconds = session.nanoseconds();
  const auto& steps = *session.program().steps();
  for (flatbuffers::uoffset_t i = 0; i < steps.size(); ++i) {
    std::size_t bytes = 0;
    for (const auto* list : {steps.Get(i)->inputs(), steps.Get(i)->outputs()}) {
      for (const int index : indices(list)) {
        bytes += index < 0 ? 0 : session.tensor(static_cast<std::size_t>(index)).size;
      }
    }
    found.emplace_back(steps.Get(i)->name()->str(),
                       program::EnumNameOperator(steps.Get(i)->kernel_type()), names[i],
                       nanoseconds[i], bytes);
  }
  return found;
}

using Bytes = nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// The caller keeps the buffers for as long as the session.
void open(Session* self, int descriptor, int threads, std::optional<std::uint8_t> poison,
          bool guard, const std::map<std::string, Bytes>& buffers, bool check) {
  SessionOptions options;
  options.threads = threads;
  options.poison = poison;
  options.guard = guard;
  auto file = std::make_shared<const MappedFile>(descriptor);
  if (check) { file->check_bytes(); }
  std::size_t num_found = 0;
  for (const auto* memory : *file->program().memories()) {
    const auto found = buffers.find(memory->name()->str());
    options.buffers.emplace_back();
    if (found != buffers.end()) {
      options.buffers.back() = {reinterpret_cast<std::byte*>(found->second.data()),
                                found->second.size()};
      ++num_found;
    }
  }
  if (num_found != buffers.size()) { throw nb::value_error("a buffer names an unknown memory"); }
  new (self) Session(std::move(file), options);
}

using MemoryInfo =
    std::tuple<std::string, std::uint64_t, std::uint32_t, bool, bool, std::uintptr_t>;

std::vector<MemoryInfo> memories(const Session& session) {
  std::vector<MemoryInfo> found;
  for (const auto* memory : *session.file().program().memories()) {
    const auto* data = session.arenas()[found.size()].data();
    found.emplace_back(memory->name()->str(), memory->size(), memory->alignment(),
                       memory->writable(), memory->spilled(),
                       reinterpret_cast<std::uintptr_t>(data));
  }
  return found;
}

void note_nanoseconds(Session& session, std::size_t turn, std::int64_t value) {
  if (turn >= session.num_turns()) { throw nb::index_error("turn index out of range"); }
  session.note_nanoseconds(turn, value);
}

// Raises in a loop what a signal raises, such as KeyboardInterrupt.
void check_signals() {
  const nb::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) { throw nb::python_error(); }
}

}  // namespace

NB_MODULE(_core, module) {
  Interruption::set_check(check_signals);
  nb::exception<ProgramError>(module, "ProgramError");
  nb::exception<SystemError>(module, "ResourceError");
  nb::exception<ForkedError>(module, "ForkedError");
  nb::exception<IndexError>(module, "RangeError");
  const nb::exception<SizeRangeError> size_range(module, "SizeRangeError");
  nb::exception<StatesFullError>(module, "StatesFullError", size_range);
  nb::exception<StatesError>(module, "StatesError");
  nb::exception<StageError>(module, "StageError");
  nb::class_<ExternalStep>(module, "ExternalStep")
      .def_ro("turn", &ExternalStep::turn)
      .def_ro("name", &ExternalStep::name)
      .def_ro("model", &ExternalStep::model)
      .def_ro("input_names", &ExternalStep::input_names)
      .def_ro("inputs", &ExternalStep::inputs)
      .def_ro("output_names", &ExternalStep::output_names)
      .def_ro("outputs", &ExternalStep::outputs);
  nb::class_<SessionMemory>(module, "SessionMemory")
      .def_ro("memories", &SessionMemory::memories)
      .def_ro("program", &SessionMemory::program)
      .def_ro("weights", &SessionMemory::weights)
      .def_ro("weights_resident", &SessionMemory::weights_resident)
      .def_ro("decoded", &SessionMemory::decoded)
      .def_ro("kernels", &SessionMemory::kernels)
      .def_ro("other", &SessionMemory::other);
  nb::class_<Session>(module, "Session")
      .def("__init__", &open, "descriptor"_a, "threads"_a, "poison"_a.none(), "guard"_a,
           "buffers"_a, "check"_a)
      .def("run", &Session::run, "first"_a, "last"_a, nb::call_guard<nb::gil_scoped_release>())
      .def("begin", &Session::begin)
      .def("end", &Session::end)
      .def("settle", &Session::settle, nb::call_guard<nb::gil_scoped_release>())
      .def("lend", &lend, "input"_a, "array"_a)
      .def("fetch", &fetch, "output"_a, "array"_a)
      .def("reset", &Session::reset)
      .def("grown", &Session::grown)
      .def("truncate", &Session::truncate, "rows"_a)
      .def("save", &save)
      .def("load", &load, "saved"_a)
      .def("dimensions", &dimensions)
      .def("sizes", &Session::sizes)
      .def("sizes_of", &Session::sizes_of, "shapes"_a)
      .def("resize", &Session::resize, "sizes"_a)
      .def("view", &view, "tensor"_a)
      .def("inputs", &ports<&program::Program::inputs>)
      .def("outputs", &ports<&program::Program::outputs>)
      .def("states", &states)
      .def("external_steps", &external_steps)
      .def("stages", &stages)
      .def("backends", &backends)
      .def("tuned_on", &tuned_on)
      .def("set_profiling", &Session::set_profiling, "wanted"_a)
      .def("note_nanoseconds", &note_nanoseconds, "turn"_a, "value"_a)
      .def("profile", &profile)
      .def("program",
           [](const Session& self) {
             return nb::bytes(reinterpret_cast<const char*>(self.file().program_data()),
                              self.file().program_size());
           })
      .def_prop_ro("num_steps", &Session::num_steps)
      .def_prop_ro("num_turns", &Session::num_turns)
      .def_prop_ro("has_lane", &Session::has_lane)
      .def("memories", &memories)
      .def("memory", &Session::memory);
  nb::class_<StageGuard>(module, "StageGuard")
      .def(
          "__init__",
          [](StageGuard* self, const Session& session) {
            new (self) StageGuard(session.program(), session.tensors());
          },
          "session"_a, nb::keep_alive<1, 2>())
      .def("begin",
           [](StageGuard& self, std::size_t stage) {
             check_stage(self, stage);
             self.begin(stage);
           })
      .def("end",
           [](StageGuard& self, std::size_t stage) {
             check_stage(self, stage);
             self.end(stage);
           })
      .def("skip",
           [](StageGuard& self, std::size_t stage) {
             check_stage(self, stage);
             self.skip(stage);
           })
      .def("finish", &StageGuard::finish);
  module.def("supported", &supported_operators);
  module.def("processor_name", [] { return std::string(ProcessorName().text()); });
}

}  // namespace arenite
