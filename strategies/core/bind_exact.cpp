#include "bind_exact.hpp"

#include <nanobind/stl/function.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <stdexcept>
#include <tuple>

#include "minimise.hpp"

namespace nb = nanobind;

namespace arenite {
namespace {

using Watch = std::function<bool(std::int64_t, std::int64_t)>;
using Answer = std::tuple<std::vector<std::int64_t>, std::int64_t, std::int64_t>;

constexpr std::size_t kStackBytes = std::size_t{1} << 30;  // reserved; one frame a record
constexpr auto kPoll = std::chrono::milliseconds(20);

// A search on a thread of its own: its recursion is as deep as there are records, and the
// caller's thread stays free to see signals.
class Worker {
 public:
  explicit Worker(Minimiser& minimiser) : minimiser_(minimiser) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, kStackBytes);
    const int failure = pthread_create(&thread_, &attributes, &Worker::main, this);
    pthread_attr_destroy(&attributes);
    if (failure != 0) throw std::runtime_error("the search thread could not be started");
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker() {
    minimiser_.stop();
    pthread_join(thread_, nullptr);
  }

  // Returns whether the search ended while waiting.
  bool wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, kPoll, [this] { return done_; });
  }

 private:
  static void* main(void* self) {
    Worker& worker = *static_cast<Worker*>(self);
    worker.minimiser_.run();
    const std::lock_guard<std::mutex> lock(worker.mutex_);
    worker.done_ = true;
    worker.changed_.notify_one();
    return nullptr;
  }

  Minimiser& minimiser_;
  pthread_t thread_{};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
};

void check(const std::vector<std::int64_t>& starts, const std::vector<std::int64_t>& ends,
           const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& alignments,
           const std::vector<std::int64_t>& offsets) {
  const std::size_t count = starts.size();
  if (ends.size() != count || sizes.size() != count || alignments.size() != count ||
      offsets.size() != count) {
    throw std::invalid_argument("the lists differ in length");
  }
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (starts[i] >= ends[i]) throw std::invalid_argument("a lifetime is empty");
    if (sizes[i] < 1 || alignments[i] < 1) throw std::invalid_argument("a size is not positive");
    if (__builtin_add_overflow(sum, sizes[i], &sum) ||
        __builtin_add_overflow(sum, alignments[i], &sum)) {
      throw std::overflow_error("the sizes add up to more than 2^63 - 1");
    }
  }
}

Answer minimise(const std::vector<std::int64_t>& starts, const std::vector<std::int64_t>& ends,
                std::vector<std::int64_t> sizes, std::vector<std::int64_t> alignments,
                std::vector<std::int64_t> offsets, std::int64_t height, std::int64_t lower_bound,
                std::uint64_t seed, std::int64_t max_nodes, const Watch& watch) {
  check(starts, ends, sizes, alignments, offsets);
  std::vector<Lifetime> lifetimes;
  for (std::size_t i = 0; i < starts.size(); ++i) lifetimes.push_back({starts[i], ends[i]});
  nb::gil_scoped_release unlocked;
  Minimiser minimiser(Sections(lifetimes, std::move(sizes), std::move(alignments)),
                      {std::move(offsets), height, lower_bound}, seed, max_nodes);
  {
    Worker worker(minimiser);
    while (!worker.wait()) {
      const BestPlan best = minimiser.best();
      nb::gil_scoped_acquire locked;
      if (watch(best.height, best.lower_bound)) break;
    }
  }
  const BestPlan best = minimiser.best();
  return {best.offsets, best.height, best.lower_bound};
}

}  // namespace

void bind_exact(nb::module_& module) {
  module.def("minimise", &minimise, nb::arg("starts"), nb::arg("ends"), nb::arg("sizes"),
             nb::arg("alignments"), nb::arg("offsets"), nb::arg("height"),
             nb::arg("lower_bound"), nb::arg("seed"), nb::arg("max_nodes"),
             nb::arg("watch"));
}

}  // namespace arenite
