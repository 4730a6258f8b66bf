// How a native search asks Python whether to stop.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <functional>
#include <utility>

namespace arenite {

// Returns what a search may ask as often as it likes: Python is asked at once and then every
// 40 ms, with the interpreter locked, which also lets it see signals. Once it has said to
// stop, that is the answer.
inline std::function<bool()> polling(std::function<bool()> should_stop) {
  using Clock = std::chrono::steady_clock;
  return [should_stop = std::move(should_stop), next = Clock::now(), is_stopped = false]() mutable {
    if (is_stopped || Clock::now() < next) return is_stopped;
    nanobind::gil_scoped_acquire locked;
    is_stopped = should_stop();
    next = Clock::now() + std::chrono::milliseconds(40);
    return is_stopped;
  };
}

// Returns what a long computation calls as often as it likes so that Python sees signals. Where the
// handler of one raises, as that of Ctrl-C does, the computation ends by that exception.
inline std::function<bool()> seeing_signals() {
  return polling([] {
    if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
    return false;
  });
}

}  // namespace arenite
