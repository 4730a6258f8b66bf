// The C API over arenite::Session: no exception passes, every error becomes a status and a text.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "arenite.h"
#include "errors.hpp"
#include "handles.hpp"
#include "inner_programs.hpp"
#include "session.hpp"
#include "sizes.hpp"
#include "stages.hpp"
#include "subranges.hpp"
#include "validation.hpp"

static_assert(ARENITE_ALIGNMENT == arenite::MappedFile::kAlignment);
static_assert(ARENITE_ALIGNMENT == arenite::Arena::kMinAlignment);
static_assert(ARENITE_BOOLEAN == static_cast<int>(arenite::program::Type::boolean));
static_assert(ARENITE_FLOAT64 == static_cast<int>(arenite::program::Type::float64));

using arenite::capi::check_runs;
using arenite::capi::fail;
using arenite::capi::guarded;
using arenite::capi::refuse_null;
using arenite::capi::translate;

namespace {

constexpr unsigned kMaxThreads = 256;
// No struct of any version is as large: who says so has not set its size.
constexpr std::size_t kMaxStruct = 4096;

// Of a fixed size, so that running out of memory can be reported.
thread_local char last_error[1024] = "";

using Ports = flatbuffers::Vector<flatbuffers::Offset<arenite::program::Port>>;

// Fills in what there is of some ports, or makes it. Then nothing is allocated.
void find_ports(const arenite::Session& session, const Ports& stated, arenite::Span some,
                std::size_t prefix, std::vector<arenite_session::Port>& found) {
  found.resize(some.end - some.first);
  for (std::size_t index = some.first; index < some.end; ++index) {
    const auto& port = *stated.Get(static_cast<flatbuffers::uoffset_t>(index));
    const auto& view = session.port_tensor(port);
    auto& [shape, strides, tensor] = found[index - some.first];
    shape.resize(view.rank());
    strides.resize(view.rank());
    auto stride = static_cast<std::ptrdiff_t>(arenite::element_size(view.type));
    for (std::size_t i = view.rank(); i-- > 0;) {
      const std::size_t axis = port.permutation()->Get(static_cast<flatbuffers::uoffset_t>(i));
      shape[axis] = view.shape[i];
      strides[axis] = stride;
      stride *= static_cast<std::ptrdiff_t>(view.shape[i]);
    }
    const bool is_quantised = view.scales.size() == 1;
    tensor = {port.name()->c_str() + prefix,
              static_cast<arenite_type>(view.type),
              view.rank(),
              shape.data(),
              strides.data(),
              view.data,
              view.size,
              is_quantised ? view.scales[0] : 0.0F,
              is_quantised ? view.zero_point : 0};
  }
}

// Whether a copy of `size` bytes fits the port, or the status of the failure.
arenite_status checked_copy(const std::vector<arenite_session::Port>& ports, std::size_t index,
                            const void* data, std::size_t size) {
  if (index >= ports.size()) {
    return fail(ARENITE_ERROR_ARGUMENT, ("there is no input or output " + std::to_string(index) +
                                         "; the model has " + std::to_string(ports.size()))
                                            .c_str());
  }
  const auto& tensor = ports[index].tensor;
  if (size != tensor.size) {
    return fail(ARENITE_ERROR_ARGUMENT,
                ("'" + std::string(tensor.name) + "' has " + std::to_string(tensor.size) +
                 " B; the array has " + std::to_string(size))
                    .c_str());
  }
  return data != nullptr || size == 0 ? ARENITE_OK : refuse_null();
}

arenite_status refuse_unbegun(const arenite_session& session) {
  return fail(ARENITE_ERROR_ORDER, ("no run of '" + std::string(arenite_session_name(&session)) +
                                    "' has begun; call arenite_session_start")
                                       .c_str());
}

// Sizes that structs of the caller had when they were first there.
constexpr std::size_t kLeastOptions = offsetof(arenite_options, buffers);
constexpr std::size_t kLeastMemory = offsetof(arenite_memory, spilled);
constexpr std::size_t kLeastDimension = offsetof(arenite_dimension, grows);
constexpr std::size_t kLeastResident = sizeof(arenite_resident);

// What the names of ports begin with, in a system: the name of the model and a dot.
std::size_t prefix_of(const arenite_session& session) {
  if (session.system == nullptr) { return 0; }
  const auto& stages = *session.session.program().stages();
  const auto* name = stages.Get(static_cast<flatbuffers::uoffset_t>(session.stage))->name();
  return name->size() + 1;
}

arenite_status refuse_size(std::size_t size) {
  return fail(ARENITE_ERROR_ARGUMENT, ("a struct_size of " + std::to_string(size) +
                                       " is of no version; begin with the macro of the header")
                                          .c_str());
}

// Reads what a caller of any version knows of the options.
arenite_status read_options(const arenite_options& given, arenite_options& options) {
  const std::size_t size = given.struct_size;
  if (size < kLeastOptions || size > kMaxStruct) { return refuse_size(size); }
  const auto* bytes = reinterpret_cast<const unsigned char*>(&given);
  for (std::size_t i = sizeof options; i < size; ++i) {
    if (bytes[i] != 0) {
      return fail(ARENITE_ERROR_ARGUMENT,
                  "an option is set that this version of the library does not know");
    }
  }
  options = ARENITE_OPTIONS_DEFAULT;
  std::memcpy(&options, &given, std::min(size, sizeof options));
  return ARENITE_OK;
}

// Writes what a caller of any version knows of a struct, which begins with its size.
template <typename Struct>
arenite_status write_struct(Struct filled, std::size_t least, Struct* given) {
  const std::size_t size = given->struct_size;
  if (size < least || size > kMaxStruct) { return refuse_size(size); }
  filled.struct_size = size;
  auto* bytes = reinterpret_cast<unsigned char*>(given);
  std::fill(bytes, bytes + size, static_cast<unsigned char>(0));
  std::memcpy(given, &filled, std::min(size, sizeof filled));
  return ARENITE_OK;
}

std::size_t supplied_size(const arenite::program::Memory& memory) {
  return static_cast<std::size_t>(memory.size()) + arenite::Arena::kSlack;
}

arenite_status make_model(std::shared_ptr<const arenite::MappedFile> file, arenite_model** model) {
  std::vector<arenite::Room> rooms;
  arenite::validated_tensors(file->program(), rooms);
  arenite::validate_inner_programs(file->program());
  arenite::check_subranges(file->program());
  for (std::size_t i = 0; i < arenite::num_subranges(file->program()); ++i) {
    arenite::validated_tensors(
        *file->program().subranges()->Get(static_cast<flatbuffers::uoffset_t>(i)), rooms);
  }
  *model = new arenite_model{std::move(file)};
  return ARENITE_OK;
}

}  // namespace

namespace arenite::capi {

arenite_status fail(arenite_status status, const char* text) {
  std::snprintf(last_error, sizeof last_error, "%s", text);
  return status;
}

arenite_status refuse_null() {
  return fail(ARENITE_ERROR_ARGUMENT, "a pointer is null that must not be");
}

arenite_status translate(const arenite_options* given, const arenite_model& model,
                         SessionOptions& translated) {
  if (given == nullptr) { return ARENITE_OK; }
  arenite_options options;
  const auto status = read_options(*given, options);
  if (status != ARENITE_OK) { return status; }
  if (options.threads > kMaxThreads) {
    return fail(ARENITE_ERROR_ARGUMENT, "more than 256 threads");
  }
  translated.threads = options.threads == 0 ? 1 : static_cast<int>(options.threads);
  const std::size_t num_memories = arenite_model_num_memories(&model);
  if (options.buffers != nullptr) {
    if (options.arena != nullptr) {
      return fail(ARENITE_ERROR_ARGUMENT, "give either an arena or buffers");
    }
    if (options.num_buffers != num_memories) {
      return fail(ARENITE_ERROR_ARGUMENT,
                  ("the model has " + std::to_string(num_memories) + " memories; " +
                   std::to_string(options.num_buffers) + " buffers are given")
                      .c_str());
    }
    for (std::size_t i = 0; i < num_memories; ++i) {
      const auto& buffer = options.buffers[i];
      translated.buffers.push_back({static_cast<std::byte*>(buffer.data), buffer.size});
    }
  } else if (options.arena != nullptr) {
    if (num_memories != 1) {
      return fail(ARENITE_ERROR_ARGUMENT, ("the model has " + std::to_string(num_memories) +
                                           " memories; give `buffers`, not `arena`")
                                              .c_str());
    }
    translated.buffers.push_back({static_cast<std::byte*>(options.arena), options.arena_size});
  }
  return ARENITE_OK;
}

arenite_status check_runs(const program::Program& program) {
  for (const auto* step : *program.steps()) {
    if (step->kernel_type() == program::Operator::External) {
      return fail(
          ARENITE_ERROR_UNSUPPORTED,
          ("step '" + step->name()->str() + "' needs ONNX Runtime; this model runs in Python only")
              .c_str());
    }
  }
  return ARENITE_OK;
}

}  // namespace arenite::capi

arenite_session::arenite_session(std::shared_ptr<arenite::Session> of, arenite_system* owner,
                                 std::size_t number)
    : shared(std::move(of)),
      session(*shared),
      system(owner),
      stage(number),
      ranges(arenite::stages_of(session.program())[number]),
      sizes(session.sizes()) {
  find_ports();
}

void arenite_session::find_ports() {
  ::find_ports(session, *session.program().inputs(), ranges.inputs, prefix_of(*this), inputs);
  find_outputs();
}

void arenite_session::find_outputs() {
  ::find_ports(session, *session.program().outputs(), ranges.outputs, prefix_of(*this), outputs);
}

const char* arenite_version(void) { return ARENITE_VERSION; }

unsigned arenite_api_version(void) { return ARENITE_API_VERSION; }

const char* arenite_last_error(void) { return last_error; }

const char* arenite_type_name(arenite_type type) {
  const auto known = static_cast<arenite::program::Type>(type);
  return type >= 0 && type <= ARENITE_FLOAT64 ? arenite::program::EnumNameType(known) : "unknown";
}

arenite_status arenite_model_open(const char* path, arenite_model** model) {
  if (model == nullptr) { return refuse_null(); }
  *model = nullptr;
  if (path == nullptr) { return refuse_null(); }
  return guarded([&] {
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) {
      const std::string reason = std::strerror(errno);
      return fail(ARENITE_ERROR_FILE, (std::string(path) + ": " + reason).c_str());
    }
    // The file stays mapped when its descriptor is closed.
    const std::unique_ptr<const int, void (*)(const int*)> closed(
        &descriptor, [](const int* opened) { close(*opened); });
    try {
      return make_model(std::make_shared<const arenite::MappedFile>(descriptor), model);
    } catch (const arenite::SystemError& error) { return fail(ARENITE_ERROR_FILE, error.what()); }
  });
}

arenite_status arenite_model_from_memory(const void* data, size_t size, arenite_model** model) {
  if (model == nullptr) { return refuse_null(); }
  *model = nullptr;
  if (data == nullptr) { return refuse_null(); }
  if (reinterpret_cast<std::uintptr_t>(data) % ARENITE_ALIGNMENT != 0) {
    return fail(ARENITE_ERROR_ARGUMENT, "the bytes of the file are not aligned to 64 B");
  }
  return guarded([&] {
    return make_model(
        std::make_shared<const arenite::MappedFile>(static_cast<const std::byte*>(data), size),
        model);
  });
}

arenite_status arenite_model_check(const arenite_model* model) {
  if (model == nullptr) { return refuse_null(); }
  return guarded([&] {
    model->file->check_bytes();
    return ARENITE_OK;
  });
}

void arenite_model_close(arenite_model* model) { delete model; }

const char* arenite_model_name(const arenite_model* model) {
  return model != nullptr ? model->file->program().name()->c_str() : "";
}

size_t arenite_model_arena_size(const arenite_model* model) {
  std::size_t total = 0;
  for (std::size_t i = 0; i < arenite_model_num_memories(model); ++i) {
    const auto& memory =
        *model->file->program().memories()->Get(static_cast<flatbuffers::uoffset_t>(i));
    total += memory.spilled() ? 0 : supplied_size(memory);
  }
  return total;
}

size_t arenite_model_num_memories(const arenite_model* model) {
  return model != nullptr ? model->file->program().memories()->size() : 0;
}

arenite_status arenite_model_memory(const arenite_model* model, size_t index,
                                    arenite_memory* memory) {
  if (model == nullptr || memory == nullptr) { return refuse_null(); }
  return guarded([&] {
    const std::size_t count = arenite_model_num_memories(model);
    if (index >= count) {
      return fail(ARENITE_ERROR_ARGUMENT, ("there is no memory " + std::to_string(index) +
                                           "; the model has " + std::to_string(count))
                                              .c_str());
    }
    const auto& stated =
        *model->file->program().memories()->Get(static_cast<flatbuffers::uoffset_t>(index));
    const std::size_t alignment =
        std::max<std::size_t>(stated.alignment(), arenite::Arena::kMinAlignment);
    return write_struct<arenite_memory>(
        {0, stated.name()->c_str(), supplied_size(stated), alignment, stated.writable() ? 1 : 0,
         stated.spilled() ? 1 : 0},
        kLeastMemory, memory);
  });
}

size_t arenite_model_num_dimensions(const arenite_model* model) {
  const auto* found = model != nullptr ? model->file->program().dimensions() : nullptr;
  return found != nullptr ? found->size() : 0;
}

arenite_status arenite_model_dimension(const arenite_model* model, size_t index,
                                       arenite_dimension* dimension) {
  if (model == nullptr || dimension == nullptr) { return refuse_null(); }
  return guarded([&] {
    const std::size_t count = arenite_model_num_dimensions(model);
    if (index >= count) {
      return fail(ARENITE_ERROR_ARGUMENT, ("there is no dimension " + std::to_string(index) +
                                           "; the model has " + std::to_string(count))
                                              .c_str());
    }
    const auto& stated =
        *model->file->program().dimensions()->Get(static_cast<flatbuffers::uoffset_t>(index));
    return write_struct<arenite_dimension>(
        {0, stated.name()->c_str(), static_cast<std::size_t>(stated.low()),
         static_cast<std::size_t>(stated.high()), static_cast<std::size_t>(stated.step()),
         arenite::is_counted(stated) ? 1 : 0, arenite::grows(stated) ? 1 : 0},
        kLeastDimension, dimension);
  });
}

size_t arenite_model_weights_size(const arenite_model* model) {
  return model != nullptr ? model->file->weights_size() : 0;
}

arenite_status arenite_session_create(const arenite_model* model, const arenite_options* options,
                                      arenite_session** session) {
  if (session == nullptr) { return refuse_null(); }
  *session = nullptr;
  if (model == nullptr) { return refuse_null(); }
  return guarded([&] {
    arenite::SessionOptions translated;
    auto status = translate(options, *model, translated);
    if (status == ARENITE_OK) { status = check_runs(model->file->program()); }
    if (status != ARENITE_OK) { return status; }
    if (model->file->program().stages() != nullptr &&
        model->file->program().stages()->size() != 0) {
      return fail(ARENITE_ERROR_UNSUPPORTED,
                  "the file has several models; open it by arenite_system_create");
    }
    *session = new arenite_session(std::make_shared<arenite::Session>(model->file, translated),
                                   nullptr, 0);
    return ARENITE_OK;
  });
}

void arenite_session_destroy(arenite_session* session) {
  if (session != nullptr && session->system == nullptr) { delete session; }
}

arenite_status arenite_session_memory(const arenite_session* session, arenite_resident* resident) {
  if (session == nullptr || resident == nullptr) { return refuse_null(); }
  return guarded([&] {
    const auto held = session->session.memory();
    return write_struct<arenite_resident>(
        {0, held.memories, held.program, held.weights, held.weights_resident, held.decoded,
         held.kernels, held.other},
        kLeastResident, resident);
  });
}

size_t arenite_session_num_inputs(const arenite_session* session) {
  return session != nullptr ? session->inputs.size() : 0;
}

size_t arenite_session_num_outputs(const arenite_session* session) {
  return session != nullptr ? session->outputs.size() : 0;
}

const arenite_tensor* arenite_session_input(const arenite_session* session, size_t index) {
  return index < arenite_session_num_inputs(session) ? &session->inputs[index].tensor : nullptr;
}

const arenite_tensor* arenite_session_output(const arenite_session* session, size_t index) {
  return index < arenite_session_num_outputs(session) ? &session->outputs[index].tensor : nullptr;
}

arenite_status arenite_session_resize(arenite_session* session, const size_t* sizes, size_t count) {
  if (session == nullptr || (sizes == nullptr && count != 0)) { return refuse_null(); }
  return guarded([&] {
    if (count != session->sizes.size()) {
      return fail(ARENITE_ERROR_ARGUMENT,
                  ("the model has " + std::to_string(session->sizes.size()) + " dimensions; " +
                   std::to_string(count) + " sizes are given")
                      .c_str());
    }
    for (std::size_t i = 0; i < count; ++i) {
      // No range has a number beyond 63 bits.
      session->sizes[i] = static_cast<std::int64_t>(std::min<std::uint64_t>(sizes[i], INT64_MAX));
    }
    session->session.resize(session->sizes);
    if (session->system == nullptr) {  // a subrange has turns of its own
      session->ranges.turns.end = std::max<std::size_t>(session->session.num_turns(), 1);
      session->has_begun = false;
      session->find_ports();
      return ARENITE_OK;
    }
    for (const auto& model : session->system->models) {
      if (model->shared == session->shared) { model->find_ports(); }
    }
    return ARENITE_OK;
  });
}

size_t arenite_session_size(const arenite_session* session, size_t index) {
  if (session == nullptr || index >= session->session.sizes().size()) { return 0; }
  return static_cast<std::size_t>(session->session.sizes()[index]);
}

arenite_status arenite_session_feed(arenite_session* session, size_t index, const void* data,
                                    size_t size) {
  if (session == nullptr) { return refuse_null(); }
  return guarded([&] {
    if (session->system != nullptr && !session->has_begun) { return refuse_unbegun(*session); }
    const auto status = checked_copy(session->inputs, index, data, size);
    if (status == ARENITE_OK) {
      session->session.feed(session->ranges.inputs.first + index,
                            static_cast<const std::byte*>(data));
    }
    return status;
  });
}

arenite_status arenite_session_fetch(const arenite_session* session, size_t index, void* data,
                                     size_t size) {
  if (session == nullptr) { return refuse_null(); }
  return guarded([&] {
    const auto status = checked_copy(session->outputs, index, data, size);
    if (status == ARENITE_OK) {
      session->session.fetch(session->ranges.outputs.first + index, static_cast<std::byte*>(data));
    }
    return status;
  });
}

arenite_status arenite_session_start(arenite_session* session) {
  if (session == nullptr) { return refuse_null(); }
  return guarded([&] {
    session->session.begin();
    if (session->system != nullptr) {
      const std::lock_guard<std::mutex> held(session->system->lock);
      session->system->guard.begin(session->stage);
    }
    session->next_turn = session->ranges.turns.first;
    session->has_begun = true;
    return ARENITE_OK;
  });
}

arenite_status arenite_session_advance(arenite_session* session, size_t steps, int* is_done) {
  if (session == nullptr || is_done == nullptr) { return refuse_null(); }
  *is_done = 0;
  return guarded([&] {
    if (!session->has_begun) { return refuse_unbegun(*session); }
    const std::size_t last = session->ranges.turns.end;
    const std::size_t first = session->next_turn;
    session->next_turn += std::min(steps, last - first);
    session->session.run(first, session->next_turn);
    if (session->next_turn < last) { return ARENITE_OK; }
    *is_done = 1;
    session->has_begun = false;
    session->session.end();
    if (!session->sizes.empty()) { session->find_outputs(); }  // steps may have counted some
    if (session->system != nullptr) {
      const std::lock_guard<std::mutex> held(session->system->lock);
      session->system->guard.end(session->stage);
    }
    return ARENITE_OK;
  });
}

arenite_status arenite_session_run(arenite_session* session) {
  if (session == nullptr) { return refuse_null(); }
  if (session->system == nullptr && !session->has_begun) {
    const auto status = arenite_session_start(session);
    if (status != ARENITE_OK) { return status; }
  }
  int is_done = 0;
  return arenite_session_advance(session, SIZE_MAX, &is_done);
}

arenite_status arenite_session_skip(arenite_session* session) {
  if (session == nullptr) { return refuse_null(); }
  session->has_begun = false;
  if (session->system == nullptr) { return ARENITE_OK; }
  return guarded([&] {
    const std::lock_guard<std::mutex> held(session->system->lock);
    session->system->guard.skip(session->stage);
    return ARENITE_OK;
  });
}

const char* arenite_session_name(const arenite_session* session) {
  if (session == nullptr) { return ""; }
  const auto& program = session->session.program();
  if (session->system == nullptr) { return program.name()->c_str(); }
  return program.stages()
      ->Get(static_cast<flatbuffers::uoffset_t>(session->stage))
      ->name()
      ->c_str();
}

arenite_status arenite_session_reset(arenite_session* session) {
  if (session == nullptr) { return refuse_null(); }
  session->session.reset();
  return ARENITE_OK;
}

size_t arenite_session_held(const arenite_session* session, size_t index) {
  if (session == nullptr || index >= session->session.grown().size()) { return 0; }
  const auto& stated =
      *session->session.program().dimensions()->Get(static_cast<flatbuffers::uoffset_t>(index));
  return arenite::grows(stated) ? static_cast<std::size_t>(session->session.grown()[index]) : 0;
}

size_t arenite_session_states_size(const arenite_session* session) {
  return session != nullptr ? session->session.saved_size() : 0;
}

arenite_status arenite_session_save_states(const arenite_session* session, void* data,
                                           size_t size) {
  if (session == nullptr || data == nullptr) { return refuse_null(); }
  return guarded([&] {
    const std::size_t needed = session->session.saved_size();
    if (size != needed) {
      return fail(ARENITE_ERROR_ARGUMENT, ("the states take " + std::to_string(needed) +
                                           " B; the array has " + std::to_string(size))
                                              .c_str());
    }
    session->session.save(static_cast<std::byte*>(data));
    return ARENITE_OK;
  });
}

arenite_status arenite_session_load_states(arenite_session* session, const void* data,
                                           size_t size) {
  if (session == nullptr || data == nullptr) { return refuse_null(); }
  return guarded([&] {
    session->session.load(static_cast<const std::byte*>(data), size);
    return ARENITE_OK;
  });
}
