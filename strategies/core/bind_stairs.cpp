#include "bind_stairs.hpp"

#include <nanobind/stl/function.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <utility>

#include "bind_records.hpp"
#include "polling.hpp"
#include "stair_search.hpp"

namespace nb = nanobind;

namespace arenite {
namespace {

using Bytes = std::vector<std::int64_t>;
using Watch = std::function<bool(const Bytes& offsets, std::int64_t height)>;
// By record; each stair is offset, size, start and end one after the other.
using Outlines = std::vector<Bytes>;

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

void check_order(const std::vector<int>& order, std::size_t count) {
  std::vector<char> named(count, 0);
  for (const int record : order) {
    if (record < 0 || static_cast<std::size_t>(record) >= count || named[record]++ != 0) {
      throw std::invalid_argument("the order does not name each record once");
    }
  }
  if (order.size() != count) throw std::invalid_argument("the order does not name each record");
}

Bytes place_outlined(const Records& records, const Outlines& outlines,
                     const std::vector<std::vector<int>>& orders, std::int64_t lower_bound,
                     std::uint64_t seed, std::int64_t max_work, const Watch& watch) {
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

void bind_stairs(nb::module_& module) {
  module.def("place_outlined", &place_outlined, nb::arg("records"), nb::arg("outlines"),
             nb::arg("orders"), nb::arg("lower_bound"), nb::arg("seed"), nb::arg("max_work"),
             nb::arg("watch"));
}

}  // namespace arenite
