// Programs in bands of rows, as Python sees them.
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "band_walk.hpp"
#include "bindings.hpp"

namespace nb = nanobind;

namespace arenite {
namespace {

using Numbers = std::vector<std::int64_t>;
// Tensor, the lowest row and the row after the last that each row reads, may be overwritten.
using Reads = std::tuple<int, Numbers, Numbers, bool>;
// Result, rows, bytes of accumulators and of scratch, operands; none if it cannot be made row by
// row.
using Step = std::tuple<int, std::int64_t, std::int64_t, std::int64_t, std::vector<Reads>>;
// Of a turn, of its constants, of one row's bytes, of one row's work.
using Times = std::tuple<double, double, double, double>;
// Step, first row, number of rows.
using Turn = std::tuple<int, std::int64_t, std::int64_t>;
// Peak, number of turns, seconds.
using Walked = std::tuple<std::int64_t, std::int64_t, double>;

void check(bool is_met, const char* otherwise) {
  if (!is_met) throw std::invalid_argument(otherwise);
}

bool is_index(std::int64_t index, std::size_t end) {
  return index >= 0 && static_cast<std::size_t>(index) < end;
}

void check_indices(const std::vector<int>& indices, std::size_t end) {
  for (const int index : indices) check(is_index(index, end), "an index is out of range");
}

void check_reads(const BandReads& reads, const BandStep& step, const BandTensor& tensor) {
  const auto count = static_cast<std::size_t>(step.num_rows);
  check(reads.first.size() == count && reads.stop.size() == count,
        "the reads are not those of each row");
  check(reads.first.front() >= 0 && std::is_sorted(reads.first.begin(), reads.first.end()) &&
            std::is_sorted(reads.stop.begin(), reads.stop.end()),
        "the reads run backwards");
  check(tensor.num_rows > 0 && reads.first.back() <= tensor.num_rows && reads.stop.front() >= 0 &&
            reads.stop.back() <= tensor.num_rows,
        "the reads reach outside their tensor");
}

// Steps read what earlier ones made: else a walk would not end.
BandProgram make_program(const Numbers& sizes, const Numbers& rows, std::vector<Step> steps,
                         const std::vector<Times>& times) {
  check(sizes.size() == rows.size() && steps.size() == times.size(), "the lists differ in length");
  BandProgram program;
  std::int64_t total = 0;
  for (std::size_t index = 0; index < sizes.size(); ++index) {
    total = checked_sum(total, sizes[index]);
    check(rows[index] >= 0, "a number of rows is negative");
    program.tensors.push_back({sizes[index], rows[index]});
  }
  std::vector<char> is_used(sizes.size(), 0);  // read or made
  for (std::size_t index = 0; index < steps.size(); ++index) {
    auto& [result, num_rows, accumulators, scratch, operands] = steps[index];
    const auto& [turn_s, constant_s, touched_s, work_s] = times[index];
    const BandStep::Times each{turn_s, constant_s, touched_s, work_s};
    BandStep step{result, num_rows, accumulators, scratch, {}, each};
    if (operands.empty()) {
      program.steps.push_back(std::move(step));
      continue;
    }
    check(is_index(result, sizes.size()), "an index is out of range");
    total = checked_sum(checked_sum(total, accumulators), scratch);
    const bool is_made_in_rows = accumulators > 0 || num_rows == rows[result];
    check(num_rows > 0 && is_made_in_rows, "the rows are not those of the result");
    for (auto& [tensor, first, stop, may_overwrite] : operands) {
      check(is_index(tensor, sizes.size()), "an index is out of range");
      step.reads.push_back({tensor, std::move(first), std::move(stop), may_overwrite});
      check_reads(step.reads.back(), step, program.tensors[tensor]);
      is_used[tensor] = 1;
    }
    check(is_used[result]++ == 0, "a result is made twice, or read before it is made");
    program.steps.push_back(std::move(step));
  }
  return program;
}

class Bands {
 public:
  Bands(const Numbers& sizes, const Numbers& rows, std::vector<Step> steps,
        const std::vector<Times>& times)
      : walk_(make_program(sizes, rows, std::move(steps), times)) {}

  Walked walk(int start, int stop, std::int64_t rows, std::int64_t inner_rows,
              std::vector<int> consumed, std::vector<int> kept, std::int64_t carried,
              std::int64_t limit) {
    const BandRegion region{start,           stop,   rows, inner_rows, std::move(consumed),
                            std::move(kept), carried};
    check_region(region);
    const bool is_within = walk_.run(region, limit);
    return {is_within ? walk_.peak() : -1, walk_.num_turns(), walk_.seconds()};
  }

  std::vector<Turn> turns(int start, int stop, std::int64_t rows, std::int64_t inner_rows) {
    const BandRegion region{start, stop, rows, inner_rows, {}, {}, 0};
    check_region(region);
    std::vector<BandTurn> turns;
    walk_.run(region, Records::kMostBytes, &turns);
    std::vector<Turn> found;
    found.reserve(turns.size());
    for (const BandTurn& turn : turns) found.emplace_back(turn.step, turn.first, turn.rows);
    return found;
  }

 private:
  void check_region(const BandRegion& region) const {
    const BandProgram& program = walk_.program();
    check(region.start >= 0 && region.start < region.stop &&
              static_cast<std::size_t>(region.stop) <= program.steps.size(),
          "the region is empty or reaches outside the program");
    check(region.rows > 0 && region.inner_rows > 0, "a band has no rows");
    for (int step = region.start; step < region.stop; ++step) {
      check(!program.steps[step].reads.empty(), "a step cannot be made row by row");
    }
    check_indices(region.consumed, program.tensors.size());
    check_indices(region.kept, program.tensors.size());
    for (const int tensor : region.consumed) {
      check(program.tensors[tensor].num_rows > 0, "what is consumed has no rows");
    }
    checked_sum(0, region.carried);
  }

  BandWalk walk_;
};

}  // namespace

void bind_bands(nb::module_& module) {
  nb::class_<Bands>(module, "Bands")
      .def(nb::init<const Numbers&, const Numbers&, std::vector<Step>, const std::vector<Times>&>(),
           nb::arg("sizes"), nb::arg("rows"), nb::arg("steps"), nb::arg("times"))
      .def("walk", &Bands::walk, nb::arg("start"), nb::arg("stop"), nb::arg("rows"),
           nb::arg("inner_rows"), nb::arg("consumed"), nb::arg("kept"), nb::arg("carried"),
           nb::arg("limit"))
      .def("turns", &Bands::turns, nb::arg("start"), nb::arg("stop"), nb::arg("rows"),
           nb::arg("inner_rows"));
}

}  // namespace arenite
