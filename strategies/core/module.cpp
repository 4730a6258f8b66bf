// The native core of `arenite.strategies`: Python sees arrays in, arrays out.
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>

#include "bind_bands.hpp"
#include "bind_exact.hpp"
#include "bind_order.hpp"
#include "bind_records.hpp"
#include "bind_stairs.hpp"
#include "gap_search.hpp"
#include "polling.hpp"

namespace nb = nanobind;

namespace {

std::vector<std::int64_t> place_in_order(const arenite::Records& records,
                                         const std::vector<int>& order, arenite::Fit fit) {
  const std::size_t count = records.all().size();
  std::vector<bool> named(count, false);
  for (const int record : order) {
    if (record < 0 || static_cast<std::size_t>(record) >= count || named[record]) {
      throw std::invalid_argument("the order does not name each record once");
    }
    named[record] = true;
  }
  if (order.size() != count) {
    throw std::invalid_argument("the order does not name each record once");
  }
  nb::gil_scoped_release unlocked;
  return arenite::place_in_order(records.all(), order, fit, arenite::seeing_signals());
}

}  // namespace

NB_MODULE(_core, module) {
  nb::enum_<arenite::Fit>(module, "Fit")
      .value("FIRST", arenite::Fit::kFirst)
      .value("BEST", arenite::Fit::kBest)
      .value("BEST_TFLITE_CPU", arenite::Fit::kBestTfliteCpu)
      .value("TOP", arenite::Fit::kTop);
  arenite::bind_records(module);
  arenite::bind_bands(module);
  module.def("place_in_order", &place_in_order, nb::arg("records"), nb::arg("order"),
             nb::arg("fit"));
  arenite::bind_exact(module);
  arenite::bind_order(module);
  arenite::bind_stairs(module);
}
