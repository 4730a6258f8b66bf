// A lane: a thread that runs steps in order, beside the computing steps.
#pragma once

#include <pthread.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "step.hpp"

namespace arenite {

// Runs its steps in order, each after it is issued. Callers wait only for steps that were issued,
// so that a wait always ends.
//
// After fork() the child lacks the thread: it may call nothing here, not even the destructor.
class Lane {
 public:
  // Starts the thread. Throws SystemError.
  explicit Lane(std::vector<Step*> steps);
  // Waits for the step at work.
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // Begins or continues a run at this step; all steps before it count as issued.
  void begin(std::size_t first);
  // Issues all steps before this one.
  void issue(std::size_t end);
  // Waits until all steps before this one, which must be issued, are done.
  void wait(std::size_t end);
  // Waits until all issued steps are done.
  void drain();

  // Puts a step in the place of one, of which none may be at work.
  void replace(std::size_t index, Step* step);

  // The duration of a step's last run.
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
