// The native core of `arenite.strategies`: Python sees arrays in, arrays out.
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>

#include "bind_exact.hpp"
#include "bind_order.hpp"
#include "gap_search.hpp"

namespace nb = nanobind;

namespace {

arenite::Records make_records(const std::vector<std::int64_t>& starts,
                              const std::vector<std::int64_t>& ends,
                              std::vector<std::int64_t> sizes,
                              std::vector<std::int64_t> alignments) {
  const std::size_t count = starts.size();
  if (ends.size() != count || sizes.size() != count || alignments.size() != count) {
    throw std::invalid_argument("starts, ends, sizes and alignments differ in length");
  }
  arenite::Records records;
  records.lifetimes.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (starts[i] >= ends[i]) throw std::invalid_argument("a lifetime is empty");
    if (sizes[i] < 0 || alignments[i] < 1) throw std::invalid_argument("a size is negative");
    records.lifetimes.push_back({starts[i], ends[i]});
  }
  records.sizes = std::move(sizes);
  records.alignments = std::move(alignments);
  return records;
}

std::vector<std::int64_t> place_in_order(const std::vector<std::int64_t>& starts,
                                         const std::vector<std::int64_t>& ends,
                                         std::vector<std::int64_t> sizes,
                                         std::vector<std::int64_t> alignments,
                                         const std::vector<std::int64_t>& fixed,
                                         const std::vector<int>& order, arenite::Fit fit) {
  const arenite::Records records =
      make_records(starts, ends, std::move(sizes), std::move(alignments));
  const std::size_t count = starts.size();
  std::vector<bool> named(count, false);
  for (const int record : order) {
    if (record < 0 || static_cast<std::size_t>(record) >= count || named[record]) {
      throw std::invalid_argument("the order does not name each record once");
    }
    named[record] = true;
  }
  if (order.size() != count || fixed.size() != count) {
    throw std::invalid_argument("the order does not name each record once");
  }
  nb::gil_scoped_release unlocked;
  return arenite::place_in_order(records, order, fixed, fit);
}

}  // namespace

NB_MODULE(_core, module) {
  nb::enum_<arenite::Fit>(module, "Fit")
      .value("FIRST", arenite::Fit::kFirst)
      .value("BEST", arenite::Fit::kBest)
      .value("BEST_TFLITE_CPU", arenite::Fit::kBestTfliteCpu)
      .value("TOP", arenite::Fit::kTop);
  module.def("place_in_order", &place_in_order, nb::arg("starts"), nb::arg("ends"),
             nb::arg("sizes"), nb::arg("alignments"), nb::arg("fixed"), nb::arg("order"),
             nb::arg("fit"));
  arenite::bind_exact(module);
  arenite::bind_order(module);
}
