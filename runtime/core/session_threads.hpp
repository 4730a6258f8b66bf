// The threads of a session: the kernels' pool and the lane's thread.
#pragma once

#include <pthreadpool.h>
#include <unistd.h>

#include <memory>

#include "errors.hpp"
#include "lane.hpp"

namespace arenite {

struct SessionThreads {
  explicit SessionThreads(int count)
      : pool(count > 1 ? pthreadpool_create(count) : nullptr), process(getpid()) {}
  ~SessionThreads() {
    if (pool != nullptr && getpid() == process) {  // elsewhere it would wait for ever
      pthreadpool_destroy(pool);
    }
  }
  SessionThreads(const SessionThreads&) = delete;
  SessionThreads& operator=(const SessionThreads&) = delete;

  // Lets the step of the lane that is at work end, and its thread.
  void end_lane() {
    if (getpid() != process) {  // there is no such thread, and it would wait for ever
      static_cast<void>(lane.release());
    }
    lane.reset();
  }

  // Requires that the threads run in this process, if there are any.
  void require_here() const {
    if ((pool != nullptr || lane != nullptr) && getpid() != process) {
      throw ForkedError(
          "sessions with threads cannot be used after fork(); create "
          "sessions in the child, or with one thread where nothing moves beside it");
    }
  }

  pthreadpool_t pool;
  pid_t process;
  std::unique_ptr<Lane> lane;  // null: nothing runs beside the computation
};

}  // namespace arenite
