// Records and the searches that place them, as Python sees them.
#include <nanobind/stl/function.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <utility>

#include "bindings.hpp"
#include "gap_search.hpp"
#include "minimise.hpp"
#include "polling.hpp"
#include "stair_search.hpp"

namespace nb = nanobind;

namespace arenite {
namespace {

using Bytes = std::vector<std::int64_t>;
using PlanWatch =
    std::function<bool(const Bytes& offsets, std::int64_t height, std::int64_t bound)>;
using StairWatch = std::function<bool(const Bytes& offsets, std::int64_t height)>;
// By record; each stair is offset, size, start and end one after the other.
using Outlines = std::vector<Bytes>;

void check(const UsageRecord& record) {
  if (record.start < 0 || record.start >= record.end) {
    throw std::invalid_argument("a lifetime is empty or begins below 0");
  }
  if (record.size < 1) throw std::invalid_argument("a size is not positive");
  if (record.alignment < 1 || (record.alignment & (record.alignment - 1)) != 0) {
    throw std::invalid_argument("an alignment is not a power of two");
  }
  if (record.fixed < -1 || (record.fixed > 0 && record.fixed % record.alignment != 0)) {
    throw std::invalid_argument("a fixed offset is below 0 or unaligned");
  }
}

// Throws unless the order names each record once.
void check_order(const std::vector<int>& order, std::size_t count) {
  std::vector<char> named(count, 0);
  for (const int record : order) {
    if (record < 0 || static_cast<std::size_t>(record) >= count || named[record]++ != 0) {
      throw std::invalid_argument("the order does not name each record once");
    }
  }
  if (order.size() != count) {
    throw std::invalid_argument("the order does not name each record once");
  }
}

Bytes place(const Records& records, const std::vector<int>& order, Fit fit) {
  check_order(order, records.all().size());
  nb::gil_scoped_release unlocked;
  return place_in_order(records.all(), order, fit, seeing_signals());
}

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
                                        std::int64_t max_nodes, const PlanWatch& watch) {
  check_offsets(records, offsets);
  nb::gil_scoped_release unlocked;
  Minimiser minimiser(records.all(), std::move(offsets), lower_bound, {goal, stop_at_goal}, seed,
                      max_nodes);
  minimiser.run(polling(
      [&] { return watch(minimiser.offsets(), minimiser.height(), minimiser.lower_bound()); }));
  return {minimiser.offsets(), minimiser.lower_bound()};
}

std::vector<RigidRecord> rigid_records(const Records& records, const Outlines& outlines) {
  if (outlines.size() != records.all().size()) {
    throw std::invalid_argument("the lists differ in length");
  }
  std::vector<RigidRecord> rigid;
  for (std::size_t index = 0; index < outlines.size(); ++index) {
    const UsageRecord& record = records.all()[index];
    const Bytes& outline = outlines[index];
    if (outline.size() % 4 != 0) throw std::invalid_argument("a stair is not four numbers");
    rigid.push_back({{}, record.size, record.alignment, record.fixed});
    if (outline.empty()) rigid.back().stairs.push_back({0, record.size, record.start, record.end});
    for (std::size_t at = 0; at < outline.size(); at += 4) {
      const Stair stair{outline[at], outline[at + 1], outline[at + 2], outline[at + 3]};
      const bool is_inside = stair.offset >= 0 && stair.offset <= record.size &&
                             stair.size <= record.size - stair.offset;
      if (!is_inside || stair.size < 1 || stair.start < 0 || stair.start >= stair.end) {
        throw std::invalid_argument("a stair is empty or reaches outside its record");
      }
      rigid.back().stairs.push_back(stair);
    }
  }
  return rigid;
}

Bytes place_outlined(const Records& records, const Outlines& outlines,
                     const std::vector<std::vector<int>>& orders, std::int64_t lower_bound,
                     std::uint64_t seed, std::int64_t max_work, const StairWatch& watch) {
  std::vector<RigidRecord> rigid = rigid_records(records, outlines);
  if (orders.empty()) throw std::invalid_argument("no order is given");
  for (const std::vector<int>& order : orders) check_order(order, rigid.size());
  nb::gil_scoped_release unlocked;
  StairSearch search(std::move(rigid), lower_bound, seed);
  search.drop(orders.front());
  const auto should_stop = polling([&] { return watch(search.offsets(), search.height()); });
  for (std::size_t next = 1; next < orders.size() && !should_stop(); ++next) {
    search.drop(orders[next]);
  }
  search.run(max_work, should_stop);
  return search.offsets();
}

}  // namespace

Records::Records(const std::vector<std::int64_t>& starts, const std::vector<std::int64_t>& ends,
                 const std::vector<std::int64_t>& sizes,
                 const std::vector<std::int64_t>& alignments,
                 const std::vector<std::int64_t>& fixed) {
  const std::size_t count = starts.size();
  if (ends.size() != count || sizes.size() != count || alignments.size() != count ||
      fixed.size() != count) {
    throw std::invalid_argument("the lists differ in length");
  }
  all_.reserve(count);
  std::int64_t highest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    all_.push_back({starts[i], ends[i], sizes[i], alignments[i], fixed[i]});
    check(all_.back());
    num_bytes_ = checked_sum(checked_sum(num_bytes_, sizes[i]), alignments[i]);
    highest = std::max(highest, fixed[i]);
  }
  num_bytes_ = checked_sum(num_bytes_, highest);
}

void bind_placement(nb::module_& module) {
  nb::enum_<Fit>(module, "Fit")
      .value("FIRST", Fit::kFirst)
      .value("BEST", Fit::kBest)
      .value("BEST_TFLITE_CPU", Fit::kBestTfliteCpu)
      .value("TOP", Fit::kTop);
  nb::class_<Records>(module, "Records")
      .def(nb::init<const std::vector<std::int64_t>&, const std::vector<std::int64_t>&,
                    const std::vector<std::int64_t>&, const std::vector<std::int64_t>&,
                    const std::vector<std::int64_t>&>(),
           nb::arg("starts"), nb::arg("ends"), nb::arg("sizes"), nb::arg("alignments"),
           nb::arg("fixed"))
      .def("__len__", [](const Records& records) { return records.all().size(); });
  module.def("place_in_order", &place, nb::arg("records"), nb::arg("order"), nb::arg("fit"));
  module.def("minimise", &minimise, nb::arg("records"), nb::arg("offsets"), nb::arg("lower_bound"),
             nb::arg("goal"), nb::arg("stop_at_goal"), nb::arg("seed"), nb::arg("max_nodes"),
             nb::arg("watch"));
  module.def("place_outlined", &place_outlined, nb::arg("records"), nb::arg("outlines"),
             nb::arg("orders"), nb::arg("lower_bound"), nb::arg("seed"), nb::arg("max_work"),
             nb::arg("watch"));
}

}  // namespace arenite
