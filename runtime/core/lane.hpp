// A lane: steps that run one after another on a thread of their own, beside those that compute.
#pragma once

#include <pthread.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "step.hpp"

namespace arenite {

// Runs its steps in their order, each once it is issued. Whoever issues them may wait for any that
// it has issued, so nobody waits for ever.
//
// A child that is forked has no such thread: there nothing may be called, the destructor included.
class Lane {
 public:
  // Starts the thread. Throws SystemError.
  explicit Lane(std::vector<Step*> steps);
  // Lets the step at work end.
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // Goes on with a run where all steps before this one were issued, or begins one there.
  void begin(std::size_t first);
  // Lets all steps before this one run.
  void issue(std::size_t end);
  // Returns when all steps before this one are done, which are issued.
  void wait(std::size_t end);
  // Returns when all that were issued are done.
  void drain();

  // What a step took when it last ran.
  std::int64_t nanoseconds(std::size_t step) const { return nanoseconds_[step]; }

 private:
  static void* entry(void* self);
  void work();

  std::vector<Step*> steps_;
  std::vector<std::int64_t> nanoseconds_;
  std::mutex mutex_;
  std::condition_variable is_issued_;
  std::condition_variable is_done_;
  std::size_t issued_ = 0;
  std::size_t done_ = 0;
  bool ends_ = false;
  pthread_t thread_{};
};

}  // namespace arenite
