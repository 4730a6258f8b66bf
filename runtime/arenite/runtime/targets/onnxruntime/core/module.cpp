// The allocator that ONNX Runtime is given, steered from Python, called without it.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

#include "plan_allocator.hpp"
#include "runner.hpp"

namespace nb = nanobind;
using arenite::PlanAllocator;

namespace {

using NamedType = std::pair<std::string, int>;
using Triple = std::tuple<std::size_t, std::size_t, std::size_t>;

std::uintptr_t address(PlanAllocator& self) {
  return reinterpret_cast<std::uintptr_t>(static_cast<arenite::OrtAllocator*>(&self));
}

std::vector<Triple> stop_recording(PlanAllocator& self) {
  std::vector<Triple> result;
  for (const auto& block : self.stop_recording()) {
    result.emplace_back(block.size, block.start, block.end);
  }
  return result;
}

void serve(PlanAllocator& self, std::uintptr_t arena, std::size_t capacity,
           const std::vector<std::size_t>& sizes, const std::vector<std::size_t>& offsets) {
  if (sizes.size() != offsets.size()) {
    throw std::invalid_argument("sizes and offsets differ in length");
  }
  std::vector<arenite::PlannedBlock> blocks;
  blocks.reserve(sizes.size());
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] > capacity || offsets[i] > capacity - sizes[i]) {
      throw std::invalid_argument("a block is not inside the arena");
    }
    blocks.push_back({sizes[i], offsets[i]});
  }
  self.serve(reinterpret_cast<std::byte*>(arena), std::move(blocks));
}

Triple counts(const PlanAllocator& self) {
  const arenite::RunCounts counts = self.counts();
  return {counts.inside, counts.outside, counts.outside_bytes};
}

std::vector<arenite::ValueType> value_types(const std::vector<NamedType>& types) {
  std::vector<arenite::ValueType> result;
  for (const auto& [name, element_type] : types) result.push_back({name, element_type});
  return result;
}

}  // namespace

NB_MODULE(_allocator, module) {
  nb::class_<PlanAllocator>(module, "PlanAllocator")
      .def(nb::init<>())
      .def_prop_ro("address", &address)
      .def_prop_ro("num_calls", &PlanAllocator::num_calls)
      .def_prop_ro("counts", &counts)
      .def(
          "set_memory_info",
          [](PlanAllocator& self, std::uintptr_t info) {
            self.set_memory_info(reinterpret_cast<const void*>(info));
          },
          nb::arg("info"))
      .def("start_recording", &PlanAllocator::start_recording)
      .def("stop_recording", &stop_recording)
      .def("serve", &serve, nb::arg("arena"), nb::arg("capacity"), nb::arg("sizes"),
           nb::arg("offsets"))
      .def("start_run", &PlanAllocator::start_run);
  nb::class_<arenite::Runner>(module, "Runner")
      .def(
          "__init__",
          [](arenite::Runner* self, std::uintptr_t table, std::uintptr_t session,
             std::uintptr_t memory, const std::vector<NamedType>& inputs,
             const std::vector<NamedType>& outputs) {
            new (self)
                arenite::Runner(table, session, memory, value_types(inputs), value_types(outputs));
          },
          nb::arg("table"), nb::arg("session"), nb::arg("memory"), nb::arg("inputs"),
          nb::arg("outputs"))
      .def("run", &arenite::Runner::run, nb::arg("inputs"), nb::arg("bound"),
           nb::arg("arena").none() = nb::none());
}
