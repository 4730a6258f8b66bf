// The C API over arenite::Session: no exception passes, every error becomes a status and a text.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "arenite.h"
#include "errors.hpp"
#include "session.hpp"
#include "validation.hpp"

static_assert(ARENITE_ALIGNMENT == arenite::MappedFile::kAlignment);
static_assert(ARENITE_BOOLEAN == static_cast<int>(arenite::program::Type::boolean));
static_assert(ARENITE_BOOLEAN == static_cast<int>(arenite::program::Type::MAX));

struct arenite_model {
  std::shared_ptr<const arenite::MappedFile> file;
};

struct arenite_session {
  struct Port {
    std::vector<std::size_t> shape;
    std::vector<std::ptrdiff_t> strides;
    arenite_tensor tensor;
  };

  arenite_session(std::shared_ptr<const arenite::MappedFile> file,
                  const arenite::SessionOptions& options);

  arenite::Session session;
  std::vector<Port> inputs;
  std::vector<Port> outputs;
};

namespace {

constexpr unsigned kMaxThreads = 256;

// Of a fixed size, so that running out of memory can be reported.
thread_local char last_error[1024] = "";

arenite_status fail(arenite_status status, const char* text) {
  std::snprintf(last_error, sizeof last_error, "%s", text);
  return status;
}

// Runs what may throw.
template <typename Function>
arenite_status guarded(Function function) {
  try {
    return function();
  } catch (const arenite::VersionError& error) {
    return fail(ARENITE_ERROR_VERSION, error.what());
  } catch (const arenite::ProgramError& error) {
    return fail(ARENITE_ERROR_FORMAT, error.what());
  } catch (const arenite::SystemError& error) {
    return fail(ARENITE_ERROR_MEMORY, error.what());
  } catch (const std::bad_alloc&) {
    return fail(ARENITE_ERROR_MEMORY, "no memory");
  } catch (const std::exception& error) {
    return fail(ARENITE_ERROR_INTERNAL, error.what());
  } catch (...) {
    return fail(ARENITE_ERROR_INTERNAL, "an error that is unknown");
  }
}

arenite_status refuse_null() {
  return fail(ARENITE_ERROR_ARGUMENT, "a pointer is null that must not be");
}

using Ports = flatbuffers::Vector<flatbuffers::Offset<arenite::program::Port>>;

std::vector<arenite_session::Port> ports(const arenite::Session& session, const Ports& stated) {
  std::vector<arenite_session::Port> found(stated.size());
  for (flatbuffers::uoffset_t index = 0; index < stated.size(); ++index) {
    const auto& port = *stated.Get(index);
    const auto& view = session.port_tensor(port);
    auto& [shape, strides, tensor] = found[index];
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
    tensor = {port.name()->c_str(),
              static_cast<arenite_type>(view.type),
              view.rank(),
              shape.data(),
              strides.data(),
              view.data,
              view.size,
              is_quantised ? view.scales[0] : 0.0F,
              is_quantised ? view.zero_point : 0};
  }
  return found;
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

// The options, checked; throws nothing.
arenite_status translate(const arenite_options& given, std::size_t needed,
                         arenite::SessionOptions& options) {
  if (given.struct_size != sizeof given) {
    return fail(ARENITE_ERROR_ARGUMENT,
                "options of another size; begin with ARENITE_OPTIONS_DEFAULT, and compile with "
                "the header of this library");
  }
  if (given.threads > kMaxThreads) {
    return fail(ARENITE_ERROR_ARGUMENT, "more than 256 threads");
  }
  options.threads = given.threads == 0 ? 1 : static_cast<int>(given.threads);
  if (given.arena != nullptr && given.arena_size < needed) {
    return fail(ARENITE_ERROR_MEMORY, ("the arena given has " + std::to_string(given.arena_size) +
                                       " B; the model needs " + std::to_string(needed))
                                          .c_str());
  }
  options.arena = static_cast<std::byte*>(given.arena);
  return ARENITE_OK;
}

const arenite::program::Step* find_external(const arenite::program::Program& program) {
  for (const auto* step : *program.steps()) {
    if (step->kernel_type() == arenite::program::Operator::External) {
      return step;
    }
  }
  return nullptr;
}

arenite_status make_model(std::shared_ptr<const arenite::MappedFile> file, arenite_model** model) {
  arenite::validated_tensors(file->program());
  *model = new arenite_model{std::move(file)};
  return ARENITE_OK;
}

}  // namespace

arenite_session::arenite_session(std::shared_ptr<const arenite::MappedFile> file,
                                 const arenite::SessionOptions& options)
    : session(std::move(file), options),
      inputs(ports(session, *session.program().inputs())),
      outputs(ports(session, *session.program().outputs())) {}

const char* arenite_version(void) { return ARENITE_VERSION; }

unsigned arenite_api_version(void) { return ARENITE_API_VERSION; }

const char* arenite_last_error(void) { return last_error; }

const char* arenite_type_name(arenite_type type) {
  const auto known = static_cast<arenite::program::Type>(type);
  return type >= 0 && type <= ARENITE_BOOLEAN ? arenite::program::EnumNameType(known) : "unknown";
}

arenite_status arenite_model_open(const char* path, arenite_model** model) {
  if (model == nullptr) {
    return refuse_null();
  }
  *model = nullptr;
  if (path == nullptr) {
    return refuse_null();
  }
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
    } catch (const arenite::SystemError& error) {
      return fail(ARENITE_ERROR_FILE, error.what());
    }
  });
}

arenite_status arenite_model_from_memory(const void* data, size_t size, arenite_model** model) {
  if (model == nullptr) {
    return refuse_null();
  }
  *model = nullptr;
  if (data == nullptr) {
    return refuse_null();
  }
  if (reinterpret_cast<std::uintptr_t>(data) % ARENITE_ALIGNMENT != 0) {
    return fail(ARENITE_ERROR_ARGUMENT, "the bytes of the file are not aligned to 64 B");
  }
  return guarded([&] {
    return make_model(
        std::make_shared<const arenite::MappedFile>(static_cast<const std::byte*>(data), size),
        model);
  });
}

void arenite_model_close(arenite_model* model) { delete model; }

const char* arenite_model_name(const arenite_model* model) {
  return model != nullptr ? model->file->program().name()->c_str() : "";
}

size_t arenite_model_arena_size(const arenite_model* model) {
  return model == nullptr ? 0
                          : static_cast<std::size_t>(model->file->program().arena_size()) +
                                arenite::Arena::kSlack;
}

size_t arenite_model_weights_size(const arenite_model* model) {
  return model != nullptr ? model->file->weights_size() : 0;
}

arenite_status arenite_session_create(const arenite_model* model, const arenite_options* options,
                                      arenite_session** session) {
  if (session == nullptr) {
    return refuse_null();
  }
  *session = nullptr;
  if (model == nullptr) {
    return refuse_null();
  }
  return guarded([&] {
    arenite::SessionOptions translated;
    if (options != nullptr) {
      const auto status = translate(*options, arenite_model_arena_size(model), translated);
      if (status != ARENITE_OK) {
        return status;
      }
    }
    if (const auto* step = find_external(model->file->program()); step != nullptr) {
      return fail(
          ARENITE_ERROR_UNSUPPORTED,
          ("step '" + step->name()->str() + "' needs ONNX Runtime; this model runs in Python only")
              .c_str());
    }
    *session = new arenite_session(model->file, translated);
    return ARENITE_OK;
  });
}

void arenite_session_destroy(arenite_session* session) { delete session; }

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

arenite_status arenite_session_feed(arenite_session* session, size_t index, const void* data,
                                    size_t size) {
  if (session == nullptr) {
    return refuse_null();
  }
  return guarded([&] {
    const auto status = checked_copy(session->inputs, index, data, size);
    if (status == ARENITE_OK) {
      session->session.feed(index, static_cast<const std::byte*>(data));
    }
    return status;
  });
}

arenite_status arenite_session_fetch(const arenite_session* session, size_t index, void* data,
                                     size_t size) {
  if (session == nullptr) {
    return refuse_null();
  }
  return guarded([&] {
    const auto status = checked_copy(session->outputs, index, data, size);
    if (status == ARENITE_OK) {
      session->session.fetch(index, static_cast<std::byte*>(data));
    }
    return status;
  });
}

arenite_status arenite_session_run(arenite_session* session) {
  if (session == nullptr) {
    return refuse_null();
  }
  return guarded([&] {
    session->session.run(0, session->session.num_steps());
    return ARENITE_OK;
  });
}

arenite_status arenite_session_reset(arenite_session* session) {
  if (session == nullptr) {
    return refuse_null();
  }
  session->session.reset();
  return ARENITE_OK;
}
