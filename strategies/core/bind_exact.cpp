#include "bind_exact.hpp"

#include <nanobind/stl/function.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <utility>

#include "bind_records.hpp"
#include "minimise.hpp"
#include "polling.hpp"

namespace nb = nanobind;

namespace arenite {
namespace {

using Bytes = std::vector<std::int64_t>;
using Watch = std::function<bool(const Bytes& offsets, std::int64_t height, std::int64_t bound)>;

// Throws unless the offsets are those of a plan, overlaps aside.
void check_offsets(const Records& records, const Bytes& offsets) {
  const std::vector<UsageRecord>& all = records.all();
  if (offsets.size() != all.size()) throw std::invalid_argument("the lists differ in length");
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool is_fixed = all[i].fixed >= 0;
    if (offsets[i] < 0 || (is_fixed && offsets[i] != all[i].fixed)) {
      throw std::invalid_argument("an offset is below 0 or not the fixed one");
    }
    if (offsets[i] > Records::kMostBytes - records.num_bytes()) {
      throw std::overflow_error("an offset and the sizes add up to more than 2^62");
    }
  }
}

std::pair<Bytes, std::int64_t> minimise(const Records& records, Bytes offsets,
                                        std::int64_t lower_bound, std::int64_t goal,
                                        bool stop_at_goal, std::uint64_t seed,
                                        std::int64_t max_nodes, const Watch& watch) {
  check_offsets(records, offsets);
  nb::gil_scoped_release unlocked;
  Minimiser minimiser(records.all(), std::move(offsets), lower_bound, {goal, stop_at_goal}, seed,
                      max_nodes);
  minimiser.run(polling(
      [&] { return watch(minimiser.offsets(), minimiser.height(), minimiser.lower_bound()); }));
  return {minimiser.offsets(), minimiser.lower_bound()};
}

}  // namespace

void bind_exact(nb::module_& module) {
  module.def("minimise", &minimise, nb::arg("records"), nb::arg("offsets"), nb::arg("lower_bound"),
             nb::arg("goal"), nb::arg("stop_at_goal"), nb::arg("seed"), nb::arg("max_nodes"),
             nb::arg("watch"));
}

}  // namespace arenite
