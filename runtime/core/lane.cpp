#include "lane.hpp"

#include <signal.h>

#include <chrono>
#include <cstring>
#include <string>
#include <utility>

#include "errors.hpp"

namespace arenite {

Lane::Lane(std::vector<Step*> steps) : steps_(std::move(steps)), nanoseconds_(steps_.size()) {
  // Signals are for the threads of the caller: whoever waits there must be woken.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int reason = pthread_create(&thread_, nullptr, entry, this);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (reason != 0) {
    throw SystemError(std::string("cannot create the thread that moves tensors: ") +
                      std::strerror(reason));
  }
}

Lane::~Lane() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
  }
  is_issued_.notify_one();
  pthread_join(thread_, nullptr);
}

void Lane::replace(std::size_t index, Step* step) {
  const std::lock_guard<std::mutex> lock(mutex_);
  steps_[index] = step;
}

void Lane::begin(std::size_t first) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (first != 0 && first == issued_) { return; }
  is_done_.wait(lock, [&] { return done_ >= issued_; });
  issued_ = done_ = first;
}

void Lane::issue(std::size_t end) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    issued_ = end;
  }
  is_issued_.notify_one();
}

void Lane::wait(std::size_t end) {
  std::unique_lock<std::mutex> lock(mutex_);
  is_done_.wait(lock, [&] { return done_ >= end; });
}

void Lane::drain() {
  std::unique_lock<std::mutex> lock(mutex_);
  is_done_.wait(lock, [&] { return done_ >= issued_; });
}

void* Lane::entry(void* self) {
  static_cast<Lane*>(self)->work();
  return nullptr;
}

void Lane::work() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    is_issued_.wait(lock, [&] { return ends_ || done_ < issued_; });
    if (ends_) { return; }
    const std::size_t next = done_;
    lock.unlock();
    const auto begun = std::chrono::steady_clock::now();
    steps_[next]->run();
    const auto spent = std::chrono::steady_clock::now() - begun;
    nanoseconds_[next] = std::chrono::duration_cast<std::chrono::nanoseconds>(spent).count();
    lock.lock();
    ++done_;
    is_done_.notify_all();
  }
}

}  // namespace arenite
