// The order searches, as Python sees them.
#include <nanobind/stl/function.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>

#include "bindings.hpp"
#include "order_search.hpp"
#include "polling.hpp"

namespace nb = nanobind;

namespace arenite {
namespace {

OrderProblem make_problem(std::vector<std::vector<int>> predecessors,
                          std::vector<std::int64_t> scratch, const std::vector<std::int64_t>& sizes,
                          const std::vector<int>& writers, std::vector<std::vector<int>> touchers,
                          const std::vector<bool>& kept,
                          std::vector<std::vector<int>> replaceable) {
  const int num_operators = static_cast<int>(predecessors.size());
  const int num_storages = static_cast<int>(sizes.size());
  const auto check = [](int index, int least, int end) {
    if (index < least || index >= end) throw std::invalid_argument("an index is out of range");
  };
  if (static_cast<int>(scratch.size()) != num_operators ||
      static_cast<int>(replaceable.size()) != num_operators ||
      static_cast<int>(writers.size()) != num_storages ||
      static_cast<int>(touchers.size()) != num_storages ||
      static_cast<int>(kept.size()) != num_storages) {
    throw std::invalid_argument("the lists differ in length");
  }
  OrderProblem problem;
  for (int index = 0; index < num_storages; ++index) {
    check(writers[index], -1, num_operators);
    for (const int toucher : touchers[index]) check(toucher, 0, num_operators);
    problem.storages.push_back(
        {sizes[index], writers[index], std::move(touchers[index]), static_cast<bool>(kept[index])});
  }
  for (int index = 0; index < num_operators; ++index) {
    for (const int before : predecessors[index]) check(before, 0, num_operators);
    for (const int storage : replaceable[index]) check(storage, 0, num_storages);
  }
  problem.predecessors = std::move(predecessors);
  problem.scratch = std::move(scratch);
  problem.replaceable = std::move(replaceable);
  return problem;
}

OrderResult beam(const OrderProblem& problem, int width, std::int64_t max_bytes,
                 std::int64_t max_work, const ShouldStop& should_stop) {
  if (width < 1) throw std::invalid_argument("the width is not positive");
  nb::gil_scoped_release unlocked;
  return beam_search(problem, width, max_bytes, max_work, polling([&] { return should_stop(); }));
}

OrderResult exact(const OrderProblem& problem, const OrderResult& incumbent,
                  std::int64_t max_states, std::int64_t max_bytes, const ShouldStop& should_stop) {
  nb::gil_scoped_release unlocked;
  return exact_search(problem, incumbent, {max_states, max_bytes},
                      polling([&] { return should_stop(); }));
}

}  // namespace

void bind_order(nb::module_& module) {
  nb::class_<OrderProblem>(module, "OrderProblem")
      .def(
          "__init__",
          [](OrderProblem* self, std::vector<std::vector<int>> predecessors,
             std::vector<std::int64_t> scratch, const std::vector<std::int64_t>& sizes,
             const std::vector<int>& writers, std::vector<std::vector<int>> touchers,
             const std::vector<bool>& kept, std::vector<std::vector<int>> replaceable) {
            new (self) OrderProblem(make_problem(std::move(predecessors), std::move(scratch), sizes,
                                                 writers, std::move(touchers), kept,
                                                 std::move(replaceable)));
          },
          nb::arg("predecessors"), nb::arg("scratch"), nb::arg("sizes"), nb::arg("writers"),
          nb::arg("touchers"), nb::arg("kept"), nb::arg("replaceable"))
      .def("least_peak", &least_peak)
      .def("peak_of", &peak_of, nb::arg("order"));
  nb::class_<OrderResult>(module, "OrderResult")
      .def(nb::init<>())
      .def_rw("order", &OrderResult::order)
      .def_rw("peak", &OrderResult::peak)
      .def_prop_ro("optimal", [](const OrderResult& result) {
        return result.outcome == OrderOutcome::kOptimal;
      });
  module.def("beam_order", &beam, nb::arg("problem"), nb::arg("width"), nb::arg("max_bytes"),
             nb::arg("max_work"), nb::arg("should_stop"));
  module.def("exact_order", &exact, nb::arg("problem"), nb::arg("incumbent"), nb::arg("max_states"),
             nb::arg("max_bytes"), nb::arg("should_stop"));
}

}  // namespace arenite
