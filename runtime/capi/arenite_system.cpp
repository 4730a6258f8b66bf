// Systems: several models in one arena, each with a session of its own.
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "arenite.h"
#include "handles.hpp"
#include "stages.hpp"

using arenite::capi::check_runs;
using arenite::capi::fail;
using arenite::capi::guarded;
using arenite::capi::refuse_null;
using arenite::capi::translate;

namespace {

using arenite::program::Program;
using arenite::program::SectionKind;
using flatbuffers::uoffset_t;

// Marks the stages in a section of a checked schedule.
void mark(const Program& program, std::size_t section, std::vector<bool>& marked) {
  const auto& parts = *program.schedule()->Get(static_cast<uoffset_t>(section))->parts();
  for (const auto part : parts) {
    if (part < 0) {
      mark(program, static_cast<std::size_t>(-1 - static_cast<std::int64_t>(part)), marked);
    } else {
      marked[static_cast<std::size_t>(part)] = true;
    }
  }
}

// Which stages may run at the same time as others.
std::vector<bool> at_once(const Program& program) {
  std::vector<bool> marked(program.stages()->size());
  for (uoffset_t i = 0; i < program.schedule()->size(); ++i) {
    if (program.schedule()->Get(i)->kind() == SectionKind::at_once) { mark(program, i, marked); }
  }
  return marked;
}

}  // namespace

arenite_status arenite_system_create(const arenite_model* model, const arenite_options* options,
                                     arenite_system** system) {
  if (system == nullptr) { return refuse_null(); }
  *system = nullptr;
  if (model == nullptr) { return refuse_null(); }
  return guarded([&] {
    const Program& program = model->file->program();
    arenite::SessionOptions translated;
    auto status = translate(options, *model, translated);
    if (status == ARENITE_OK) { status = check_runs(program); }
    if (status != ARENITE_OK) { return status; }
    if (program.stages() == nullptr || program.stages()->size() == 0) {
      return fail(ARENITE_ERROR_UNSUPPORTED,
                  "the file has a single model; open it by arenite_session_create");
    }
    const auto first = std::make_shared<arenite::Session>(model->file, translated);
    translated.buffers.clear();
    for (const auto& arena : first->arenas()) {
      translated.buffers.push_back({arena.data(), arena.size() + arenite::Arena::kSlack});
    }
    // Models that run at once need steps of their own; all have the same memory.
    const auto apart = at_once(program);
    auto made = std::make_unique<arenite_system>(first);
    for (std::size_t i = 0; i < apart.size(); ++i) {
      made->models.push_back(std::make_unique<arenite_session>(
          apart[i] ? std::make_shared<arenite::Session>(model->file, translated) : first,
          made.get(), i));
    }
    *system = made.release();
    return ARENITE_OK;
  });
}

void arenite_system_destroy(arenite_system* system) { delete system; }

size_t arenite_system_num_sessions(const arenite_system* system) {
  return system != nullptr ? system->models.size() : 0;
}

arenite_session* arenite_system_session(const arenite_system* system, size_t index) {
  return index < arenite_system_num_sessions(system) ? system->models[index].get() : nullptr;
}

arenite_session* arenite_system_find(const arenite_system* system, const char* name) {
  for (size_t i = 0; name != nullptr && i < arenite_system_num_sessions(system); ++i) {
    arenite_session* session = system->models[i].get();
    if (std::strcmp(arenite_session_name(session), name) == 0) { return session; }
  }
  return nullptr;
}

arenite_status arenite_system_finish(arenite_system* system) {
  if (system == nullptr) { return refuse_null(); }
  return guarded([&] {
    const std::lock_guard<std::mutex> held(system->lock);
    for (const auto& model : system->models) { model->has_begun = false; }
    system->guard.finish();
    return ARENITE_OK;
  });
}
