#include "bind_exact.hpp"

#include <nanobind/stl/function.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>

#include "minimise.hpp"

namespace nb = nanobind;

namespace arenite {
namespace {

using Bytes = std::vector<std::int64_t>;
using Watch = std::function<bool(const Bytes& offsets, std::int64_t height, std::int64_t bound)>;

constexpr auto kBetweenWatches = std::chrono::milliseconds(40);

std::int64_t checked_sum(std::int64_t a, std::int64_t b) {
  constexpr std::int64_t kMost = std::int64_t{1} << 62;
  if (a > kMost - b) throw std::overflow_error("the sizes add up to more than 2^62");
  return a + b;
}

std::vector<Placeable> make_records(const Bytes& starts, const Bytes& ends, const Bytes& sizes,
                                    const Bytes& alignments, const Bytes& fixed,
                                    const Bytes& offsets) {
  const std::size_t count = starts.size();
  if (ends.size() != count || sizes.size() != count || alignments.size() != count ||
      fixed.size() != count || offsets.size() != count) {
    throw std::invalid_argument("the lists differ in length");
  }
  std::vector<Placeable> records;
  std::int64_t sum = 0;
  std::int64_t highest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Placeable record{starts[i], ends[i], sizes[i], alignments[i], fixed[i]};
    if (record.start < 0 || record.start >= record.end) {
      throw std::invalid_argument("a lifetime is empty or begins below 0");
    }
    if (record.size < 1) throw std::invalid_argument("a size is not positive");
    if (record.alignment < 1 || (record.alignment & (record.alignment - 1)) != 0) {
      throw std::invalid_argument("an alignment is not a power of two");
    }
    if (record.fixed < -1 || (record.fixed > 0 && record.fixed % record.alignment != 0) ||
        offsets[i] < 0 || (record.fixed >= 0 && offsets[i] != record.fixed)) {
      throw std::invalid_argument("an offset is below 0, unaligned or not the fixed one");
    }
    sum = checked_sum(checked_sum(sum, record.size), record.alignment);
    highest = std::max(highest, offsets[i]);
    records.push_back(record);
  }
  checked_sum(sum, highest);
  return records;
}

std::pair<Bytes, std::int64_t> minimise(const Bytes& starts, const Bytes& ends, const Bytes& sizes,
                                        const Bytes& alignments, const Bytes& fixed, Bytes offsets,
                                        std::int64_t lower_bound, std::int64_t goal,
                                        std::uint64_t seed, std::int64_t max_nodes,
                                        const Watch& watch) {
  const std::vector<Placeable> records =
      make_records(starts, ends, sizes, alignments, fixed, offsets);
  nb::gil_scoped_release unlocked;
  Minimiser minimiser(records, std::move(offsets), lower_bound, goal, seed, max_nodes);
  auto next_watch = std::chrono::steady_clock::now();
  bool is_stopped = false;
  minimiser.run([&] {
    if (is_stopped || std::chrono::steady_clock::now() < next_watch) return is_stopped;
    nb::gil_scoped_acquire locked;  // also lets Python see signals
    is_stopped = watch(minimiser.offsets(), minimiser.height(), minimiser.lower_bound());
    next_watch = std::chrono::steady_clock::now() + kBetweenWatches;
    return is_stopped;
  });
  return {minimiser.offsets(), minimiser.lower_bound()};
}

}  // namespace

void bind_exact(nb::module_& module) {
  module.def("minimise", &minimise, nb::arg("starts"), nb::arg("ends"), nb::arg("sizes"),
             nb::arg("alignments"), nb::arg("fixed"), nb::arg("offsets"), nb::arg("lower_bound"),
             nb::arg("goal"), nb::arg("seed"), nb::arg("max_nodes"), nb::arg("watch"));
}

}  // namespace arenite
