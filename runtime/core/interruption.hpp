// How a loop without an end is left: now and then it asks whoever set a function.
#pragma once

#include <atomic>
#include <chrono>

namespace arenite {

class Interruption {
 public:
  // Throws if the run is to end. Called by any thread that runs a loop.
  using Check = void (*)();

  // Sets the function of this process; null, as at first: loops run to their end.
  static void set_check(Check check) { check_.store(check); }

  // Called after each round of a loop; asks at most twenty times in a second.
  void poll() {
    const auto now = std::chrono::steady_clock::now();
    if (now < next_) { return; }
    next_ = now + std::chrono::milliseconds(50);
    if (const Check check = check_.load(); check != nullptr) { check(); }
  }

 private:
  static inline std::atomic<Check> check_{nullptr};
  std::chrono::steady_clock::time_point next_ =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
};

}  // namespace arenite
