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

}  // namespace arenite
