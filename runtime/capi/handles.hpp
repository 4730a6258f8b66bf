// What the files of the C library share: its handles, and how errors become statuses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "arenite.h"
#include "errors.hpp"
#include "session.hpp"
#include "stage_guard.hpp"

struct arenite_model {
  std::shared_ptr<const arenite::MappedFile> file;
};

// A model with its memory, or a model of a system with that of all.
struct arenite_session {
  struct Port {
    std::vector<std::size_t> shape;
    std::vector<std::ptrdiff_t> strides;
    arenite_tensor tensor;
  };

  arenite_session(std::shared_ptr<arenite::Session> of, arenite_system* owner, std::size_t number);

  // Fills in the structs of inputs and outputs, at the present sizes.
  void find_ports();
  void find_outputs();

  std::shared_ptr<arenite::Session> shared;
  arenite::Session& session;
  arenite_system* system;  // null: of a single model
  std::size_t stage;
  arenite::StageRanges ranges;
  std::vector<Port> inputs;
  std::vector<Port> outputs;
  std::vector<std::int64_t> sizes;  // room for those that are to be set
  bool has_begun = false;
  std::size_t next_turn = 0;
};

struct arenite_system {
  explicit arenite_system(std::shared_ptr<arenite::Session> session)
      : first(std::move(session)), guard(first->program(), first->tensors()) {}

  std::shared_ptr<arenite::Session> first;  // has the memory
  arenite::StageGuard guard;
  std::mutex lock;  // of the guard
  std::vector<std::unique_ptr<arenite_session>> models;
};

namespace arenite::capi {

arenite_status fail(arenite_status status, const char* text);
arenite_status refuse_null();

// Reads the options of a session; ARENITE_OK, or the status of what is wrong.
arenite_status translate(const arenite_options* given, const arenite_model& model,
                         SessionOptions& translated);
// Whether the library runs the program: ARENITE_OK, or the status of why not.
arenite_status check_runs(const program::Program& program);

// Runs what may throw.
template <typename Function>
arenite_status guarded(Function function) {
  try {
    return function();
  } catch (const VersionError& error) {
    return fail(ARENITE_ERROR_VERSION, error.what());
  } catch (const ProgramError& error) {
    return fail(ARENITE_ERROR_FORMAT, error.what());
  } catch (const SizeRangeError& error) {
    return fail(ARENITE_ERROR_SIZE, error.what());
  } catch (const StatesError& error) {
    return fail(ARENITE_ERROR_STATES, error.what());
  } catch (const StageError& error) {
    return fail(ARENITE_ERROR_ORDER, error.what());
  } catch (const SpillError& error) {
    return fail(ARENITE_ERROR_FILE, error.what());
  } catch (const SystemError& error) {
    return fail(ARENITE_ERROR_MEMORY, error.what());
  } catch (const ForkedError& error) {
    return fail(ARENITE_ERROR_FORKED, error.what());
  } catch (const std::bad_alloc&) {
    return fail(ARENITE_ERROR_MEMORY, "no memory");
  } catch (const std::exception& error) {
    return fail(ARENITE_ERROR_INTERNAL, error.what());
  } catch (...) { return fail(ARENITE_ERROR_INTERNAL, "unknown error"); }
}

}  // namespace arenite::capi
